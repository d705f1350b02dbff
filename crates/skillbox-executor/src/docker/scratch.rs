//! The host's side of a workspace that lives in a container: a directory of ours, gone with its value.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::owner::{self, Owner};
use crate::workspace::remove_tree;

/// A directory that nobody else looks into.
#[derive(Debug)]
pub(crate) struct Scratch {
    parent: OwnedFd,
    name: String,
    top: OwnedFd,
}

/// Where file systems in memory are, on every Linux.
const MEMORY: &str = "/dev/shm";
/// The workspace itself.
const ROOT: &str = "root";
/// Second names of files, outside the workspace.
const LINKS: &str = "links";

impl Scratch {
    /// Makes one in memory where that can be had, as a run on this host has its workspace; else below `parent`.
    pub(super) fn new(parent: &Path) -> io::Result<Self> {
        let memory = in_memory();
        let parent = memory.as_deref().unwrap_or(parent);
        DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        let prefix = format!("run-{}.", owner::this_process().replace('/', "+"));
        let made = tempfile::Builder::new().prefix(&prefix).tempdir_in(parent)?.keep();
        let name = made.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for inner in [ROOT, LINKS] {
            fs::create_dir(made.join(inner))?;
        }
        Ok(Self {
            parent: File::open(parent)?.into(),
            name,
            top: File::open(&made)?.into(),
        })
    }

    /// The directory of the workspace.
    pub(super) fn root(&self) -> io::Result<OwnedFd> {
        Ok(skillbox_runner::open_directory(self.top.as_fd(), ROOT.as_bytes())?)
    }

    /// The directory of second names.
    pub(crate) fn links(&self) -> io::Result<OwnedFd> {
        Ok(skillbox_runner::open_directory(self.top.as_fd(), LINKS.as_bytes())?)
    }
}

/// A directory of ours on a file system in memory. Everybody can make names there: it counts only when it is ours.
fn in_memory() -> Option<PathBuf> {
    let own = rustix::process::geteuid().as_raw();
    let path = PathBuf::from(format!("{MEMORY}/skillbox-{own}"));
    let _there_already = DirBuilder::new().mode(0o700).create(&path);
    let found = fs::symlink_metadata(&path).ok()?;
    let is_ours = found.is_dir() && found.uid() == own && found.mode() & 0o077 == 0;
    is_ours.then_some(path)
}

/// Removes what runs left whose processes are gone.
pub(super) fn sweep(parent: &Path) {
    for directory in in_memory().iter().map(PathBuf::as_path).chain([parent]) {
        let Ok(open) = File::open(directory) else { continue };
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let label = name
                .to_str()
                .and_then(|name| name.strip_prefix("run-")?.rsplit_once('.'));
            let is_gone = label.is_some_and(|(label, _)| owner::state(&label.replace('+', "/")) == Owner::Gone);
            if is_gone && let Err(error) = remove_tree(open.as_fd(), name.as_encoded_bytes()) {
                tracing::warn!(directory = ?name, %error, "an old scratch directory could not be removed");
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = remove_tree(self.parent.as_fd(), self.name.as_bytes()) {
            tracing::warn!(directory = %self.name, %error, "a scratch directory could not be removed");
        }
    }
}
