//! Making sure that every event has come.
//!
//! The kernel queues events in the order of the changes. So a file that is made now, in a directory of our own with a
//! watch of its own, is told of after all that happened before: once its name has come back, nothing older is missing.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use super::inbox::Inbox;

/// An event takes well under a millisecond; a machine that needs longer is better served by a full look.
const PATIENCE: Duration = Duration::from_millis(500);

/// A private directory for cookies.
#[derive(Debug)]
pub(super) struct Cookies {
    directory: TempDir,
    last: u64,
}

impl Cookies {
    pub(super) fn new() -> std::io::Result<Self> {
        let directory = tempfile::Builder::new().prefix("skillbox-watch-").tempdir()?;
        Ok(Self { directory, last: 0 })
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
        let _ = std::fs::remove_file(&file);
        came_back
    }
}
