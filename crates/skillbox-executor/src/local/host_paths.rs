//! Adapts a staged job to a script that sees the host's mounts: skills and linked inputs are copied instead of mounted,
//! and `/workspace` is replaced with its path on the host.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use rustix::io::Errno;
use skillbox_model::RelPath;

use super::LocalError;
use crate::StagedJob;
use crate::layout;
use crate::workspace::{Workspace, WorkspaceError, copy_tree};

impl StagedJob {
    /// Copies skills and links into the workspace, and replaces `/workspace` with its path on the host.
    pub(super) fn with_host_paths(self, workspace: &Workspace) -> Result<Self, LocalError> {
        for (name, snapshot) in &self.skills {
            copy_into_workspace(workspace, snapshot.root(), &layout::skill_directory(name))?;
        }
        for link in &self.links {
            copy_into_workspace(workspace, link.source.as_fd(), &link.to.to_string())?;
        }
        let handle = format!("/proc/self/fd/{}", workspace.root().as_raw_fd());
        let root = rustix::fs::readlink(handle, Vec::new()).map_err(|error| LocalError::Descriptor(error.into()))?;
        let root = OsString::from_vec(root.into_bytes());
        let to_host = |text: &OsStr| rewrite_workspace_path(&root, text);
        let cwd = to_host(OsStr::new(&self.cwd)).into_string();
        Ok(Self {
            argv: self.argv.iter().map(|word| to_host(word)).collect(),
            env: self
                .env
                .iter()
                .map(|(name, value)| (name.clone(), to_host(value)))
                .collect(),
            cwd: cwd.map_err(|_| LocalError::Descriptor(std::io::Error::from(Errno::ILSEQ)))?,
            mount_points: None,
            skills: Vec::new(),
            links: Vec::new(),
            packages: None,
            network: self.network,
            redactor: self.redactor,
            skill_dir: self.skill_dir,
        })
    }
}

fn copy_into_workspace(workspace: &Workspace, source: std::os::fd::BorrowedFd<'_>, to: &str) -> Result<(), LocalError> {
    let destination = RelPath::parse(to).map_err(|_| WorkspaceError::io("name", to)(Errno::INVAL));
    destination
        .and_then(|destination| copy_tree(workspace, source, &destination))
        .map_err(LocalError::Workspace)
}

/// Replaces the prefix `/workspace` with `root`; other texts stay unchanged.
fn rewrite_workspace_path(root: &OsStr, text: &OsStr) -> OsString {
    match text.as_bytes().strip_prefix(layout::ROOT.as_bytes()) {
        Some(rest) if rest.is_empty() || rest[0] == b'/' => OsString::from_vec([root.as_bytes(), rest].concat()),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_below_the_workspace_are_rewritten() {
        let rewritten = |text: &str| rewrite_workspace_path(OsStr::new("/real"), OsStr::new(text));
        assert_eq!(rewritten("/workspace"), "/real");
        assert_eq!(rewritten("/workspace/out/x"), "/real/out/x");
        assert_eq!(rewritten("/workspaces"), "/workspaces");
        assert_eq!(rewritten("echo /workspace"), "echo /workspace");
    }
}
