//! Waits until the events of all changes up to now have arrived.
//!
//! The kernel queues events in the order of the changes. A file that is created now, in a private watched directory,
//! therefore causes an event after all earlier changes: once that event has arrived, no earlier one is missing. Such a
//! file is called a cookie, as in Watchman.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use super::event_queue::EventQueue;

/// The maximum time to wait for a cookie. An event usually arrives within a millisecond; after this time, a rescan of
/// everything is faster.
const COOKIE_TIMEOUT: Duration = Duration::from_millis(500);

const DIRECTORY_PREFIX: &str = "skillbox-watch-";

/// A private directory for cookies, locked while it is in use.
#[derive(Debug)]
pub(super) struct SyncCookies {
    directory: TempDir,
    last_cookie: u64,
    _lock: File,
}

impl SyncCookies {
    pub(super) fn new() -> std::io::Result<Self> {
        Self::new_in(&std::env::temp_dir())
    }

    fn new_in(parent: &Path) -> std::io::Result<Self> {
        remove_stale_directories(parent);
        let directory = tempfile::Builder::new().prefix(DIRECTORY_PREFIX).tempdir_in(parent)?;
        let lock = File::open(directory.path())?;
        lock.try_lock()?;
        Ok(Self {
            directory,
            last_cookie: 0,
            _lock: lock,
        })
    }

    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The cookie whose file has this path.
    pub(super) fn cookie_of_path(directory: &Path, path: &Path) -> Option<u64> {
        path.strip_prefix(directory).ok()?.to_str()?.parse().ok()
    }

    /// Waits until all events up to now have arrived, and returns whether they have.
    pub(super) fn sync(&mut self, events: &EventQueue) -> bool {
        self.last_cookie += 1;
        let file = self.directory.path().join(self.last_cookie.to_string());
        let is_received = File::create(&file).is_ok() && events.wait_for_cookie(self.last_cookie, COOKIE_TIMEOUT);
        // If this fails, the file is removed together with the directory.
        let _ = fs::remove_file(&file);
        is_received
    }
}

/// Removes the unlocked directories of this user, which killed processes left behind. If a directory is removed between
/// its creation and its locking, its owner checks everything at each refresh and loses no change.
fn remove_stale_directories(parent: &Path) {
    let own = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let has_prefix = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(DIRECTORY_PREFIX));
        // `DirEntry::metadata` does not follow links.
        let is_own = |meta: fs::Metadata| meta.is_dir() && meta.uid() == own;
        if has_prefix && entry.metadata().is_ok_and(is_own) {
            let is_unlocked = File::open(entry.path()).is_ok_and(|directory| directory.try_lock().is_ok());
            if is_unlocked {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_directories_are_removed_and_used_ones_are_kept() {
        let parent = tempfile::tempdir().unwrap();
        let stale = parent.path().join("skillbox-watch-stale");
        fs::create_dir(&stale).unwrap();
        fs::write(stale.join("7"), "").unwrap();
        fs::create_dir(parent.path().join("other")).unwrap();
        let first = SyncCookies::new_in(parent.path()).unwrap();
        assert!(!stale.exists());
        let second = SyncCookies::new_in(parent.path()).unwrap();
        assert!(first.directory().exists() && second.directory().exists());
        assert!(parent.path().join("other").exists());
    }
}
