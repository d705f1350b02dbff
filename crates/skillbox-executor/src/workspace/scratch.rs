//! A temporary directory of the host for the workspace of a container, removed when its value is dropped.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::remove_tree;
use crate::process_identity::{self, ProcessState};

/// A private temporary directory with the files of a workspace.
#[derive(Debug)]
pub(crate) struct ScratchDirectory {
    parent: OwnedFd,
    name: String,
    top: OwnedFd,
}

/// A tmpfs that Linux distributions mount by default.
const MEMORY_FILE_SYSTEM: &str = "/dev/shm";
/// The workspace itself.
const ROOT: &str = "root";
/// Additional hard links of files, outside the workspace.
const HARD_LINKS: &str = "links";

impl ScratchDirectory {
    /// Creates a directory: if possible on a tmpfs, like the workspace of a local run, otherwise below `parent`.
    pub(crate) fn new(parent: &Path) -> io::Result<Self> {
        let memory = private_memory_directory();
        let parent = memory.as_deref().unwrap_or(parent);
        DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        let prefix = format!(
            "run-{}.",
            process_identity::current_process_identity().replace('/', "+")
        );
        let created = tempfile::Builder::new().prefix(&prefix).tempdir_in(parent)?.keep();
        let name = created.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for inner in [ROOT, HARD_LINKS] {
            fs::create_dir(created.join(inner))?;
        }
        Ok(Self {
            parent: File::open(parent)?.into(),
            name,
            top: File::open(&created)?.into(),
        })
    }

    /// Opens the directory of the workspace.
    pub(crate) fn open_root(&self) -> io::Result<OwnedFd> {
        Ok(skillbox_runner::open_directory(self.top.as_fd(), ROOT.as_bytes())?)
    }

    /// Opens the directory for additional hard links.
    pub(crate) fn open_hard_links(&self) -> io::Result<OwnedFd> {
        Ok(skillbox_runner::open_directory(
            self.top.as_fd(),
            HARD_LINKS.as_bytes(),
        )?)
    }
}

/// The directory of this user on the tmpfs. Every user can create entries on it, so owner and mode are checked.
fn private_memory_directory() -> Option<PathBuf> {
    let uid = rustix::process::geteuid().as_raw();
    let path = PathBuf::from(format!("{MEMORY_FILE_SYSTEM}/skillbox-{uid}"));
    let _exists_already = DirBuilder::new().mode(0o700).create(&path);
    let found = fs::symlink_metadata(&path).ok()?;
    let is_private = found.is_dir() && found.uid() == uid && found.mode() & 0o077 == 0;
    is_private.then_some(path)
}

/// Removes the directories of runs whose processes have ended.
pub(crate) fn remove_abandoned_scratch_directories(parent: &Path) {
    for directory in private_memory_directory().iter().map(PathBuf::as_path).chain([parent]) {
        let Ok(open) = File::open(directory) else { continue };
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let identity = name
                .to_str()
                .and_then(|name| name.strip_prefix("run-")?.rsplit_once('.'));
            let is_abandoned = identity.is_some_and(|(identity, _)| {
                process_identity::process_state(&identity.replace('+', "/")) == ProcessState::Dead
            });
            if is_abandoned && let Err(error) = remove_tree(open.as_fd(), name.as_encoded_bytes()) {
                tracing::warn!(directory = ?name, %error, "cannot remove an abandoned scratch directory");
            }
        }
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        if let Err(error) = remove_tree(self.parent.as_fd(), self.name.as_bytes()) {
            tracing::warn!(directory = %self.name, %error, "cannot remove a scratch directory");
        }
    }
}
