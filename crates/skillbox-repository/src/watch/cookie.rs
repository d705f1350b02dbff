//! Making sure that every event has come.
//!
//! The kernel queues events in the order of the changes. So a file that is made now, in a directory of our own with a
//! watch of its own, is told of after all that happened before: once its name has come back, nothing older is missing.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use super::inbox::Inbox;

/// An event takes well under a millisecond; a machine that needs longer is better served by a full look.
const PATIENCE: Duration = Duration::from_millis(500);

const PREFIX: &str = "skillbox-watch-";

/// A private directory for cookies, locked for as long as it is used.
#[derive(Debug)]
pub(super) struct Cookies {
    directory: TempDir,
    last: u64,
    _lock: File,
}

impl Cookies {
    pub(super) fn new() -> std::io::Result<Self> {
        Self::new_in(&std::env::temp_dir())
    }

    fn new_in(parent: &Path) -> std::io::Result<Self> {
        sweep(parent);
        let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        let lock = File::open(directory.path())?;
        lock.try_lock()?;
        Ok(Self {
            directory,
            last: 0,
            _lock: lock,
        })
    }

    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The cookie that an event's path stands for.
    pub(super) fn number(directory: &Path, path: &Path) -> Option<u64> {
        path.strip_prefix(directory).ok()?.to_str()?.parse().ok()
    }

    /// Waits until every event up to now has come.
    pub(super) fn sync(&mut self, inbox: &Inbox) -> bool {
        self.last += 1;
        let file = self.directory.path().join(self.last.to_string());
        let came_back = File::create(&file).is_ok() && inbox.wait_for_cookie(self.last, PATIENCE);
        // One that stays behind goes with the directory.
        let _ = fs::remove_file(&file);
        came_back
    }
}

/// Removes what killed processes of this user left: directories that nobody holds locked. One that is swept between
/// its making and its locking costs its owner a full look, and no event.
fn sweep(parent: &Path) {
    let own = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_named = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        // What is listed is no link: its own metadata is looked at.
        let is_own = |meta: fs::Metadata| meta.is_dir() && meta.uid() == own;
        if is_named && entry.metadata().is_ok_and(is_own) {
            let is_free = File::open(entry.path()).is_ok_and(|directory| directory.try_lock().is_ok());
            if is_free {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_swept_and_what_is_used_stays() {
        let parent = tempfile::tempdir().unwrap();
        let left = parent.path().join("skillbox-watch-left");
        fs::create_dir(&left).unwrap();
        fs::write(left.join("7"), "").unwrap();
        fs::create_dir(parent.path().join("other")).unwrap();
        let first = Cookies::new_in(parent.path()).unwrap();
        assert!(!left.exists());
        let second = Cookies::new_in(parent.path()).unwrap();
        assert!(first.directory().exists() && second.directory().exists());
        assert!(parent.path().join("other").exists());
    }
}
