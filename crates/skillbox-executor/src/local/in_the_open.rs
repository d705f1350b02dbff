//! A placement for a script that sees the host as it is: what would be mounted is copied, and paths are real ones.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use rustix::io::Errno;
use skillbox_model::RelPath;

use super::LocalError;
use crate::Placement;
use crate::workspace::{Workspace, WorkspaceError, copy_tree, layout};

impl Placement {
    /// Copies skills and links into the workspace, and says its real path wherever `/workspace` was said.
    pub(super) fn in_the_open(self, workspace: &Workspace) -> Result<Self, LocalError> {
        for (name, snapshot) in &self.skills {
            copy_to(workspace, snapshot.root(), &layout::skill_directory(name))?;
        }
        for link in &self.links {
            copy_to(workspace, link.source.as_fd(), &link.to.to_string())?;
        }
        let handle = format!("/proc/self/fd/{}", workspace.root().as_raw_fd());
        let root = rustix::fs::readlink(handle, Vec::new()).map_err(|error| LocalError::Pipe(error.into()))?;
        let root = OsString::from_vec(root.into_bytes());
        let real = |text: &OsStr| really_at(&root, text);
        let cwd = real(OsStr::new(&self.cwd)).into_string();
        Ok(Self {
            argv: self.argv.iter().map(|word| real(word)).collect(),
            env: self
                .env
                .iter()
                .map(|(name, value)| (name.clone(), real(value)))
                .collect(),
            cwd: cwd.map_err(|_| LocalError::Pipe(std::io::Error::from(Errno::ILSEQ)))?,
            places: None,
            skills: Vec::new(),
            links: Vec::new(),
        })
    }
}

fn copy_to(workspace: &Workspace, source: std::os::fd::BorrowedFd<'_>, to: &str) -> Result<(), LocalError> {
    let place = RelPath::parse(to).map_err(|_| WorkspaceError::new("name", to)(Errno::INVAL));
    place
        .and_then(|place| copy_tree(workspace, source, &place))
        .map_err(LocalError::Workspace)
}

/// A path below `/workspace`, below `root` instead; anything else as it is.
fn really_at(root: &OsStr, text: &OsStr) -> OsString {
    match text.as_bytes().strip_prefix(layout::ROOT.as_bytes()) {
        Some(rest) if rest.is_empty() || rest[0] == b'/' => OsString::from_vec([root.as_bytes(), rest].concat()),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_below_the_workspace_move() {
        let moved = |text: &str| really_at(OsStr::new("/real"), OsStr::new(text));
        assert_eq!(moved("/workspace"), "/real");
        assert_eq!(moved("/workspace/out/x"), "/real/out/x");
        assert_eq!(moved("/workspaces"), "/workspaces");
        assert_eq!(moved("echo /workspace"), "echo /workspace");
    }
}
