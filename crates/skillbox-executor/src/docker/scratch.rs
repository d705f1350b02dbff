//! The host's side of a workspace that lives in a container: a directory of ours, gone with its value.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use crate::workspace::remove_tree;

/// A directory that nobody else looks into.
#[derive(Debug)]
pub(crate) struct Scratch {
    parent: OwnedFd,
    name: String,
    top: OwnedFd,
}

/// The workspace itself.
const ROOT: &str = "root";
/// Second names of files, outside the workspace.
const LINKS: &str = "links";

impl Scratch {
    /// Makes one below `parent`.
    pub(super) fn new(parent: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        let made = tempfile::Builder::new().prefix("run-").tempdir_in(parent)?.keep();
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

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = remove_tree(self.parent.as_fd(), self.name.as_bytes()) {
            tracing::warn!(directory = %self.name, %error, "a scratch directory could not be removed");
        }
    }
}
