//! The lock file, read again only after it was replaced or edited.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use skillbox_trust::{LockFile, TrustError};

/// Identifies the content of the file. Every write changes the time of the last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

/// The lock file that was read last.
#[derive(Debug, Default)]
pub(super) struct LockCache(Mutex<Option<(FileStamp, Arc<LockFile>)>>);

impl LockCache {
    /// The current lock file; `None` if there is none.
    pub(super) fn read(&self, path: &Path) -> Result<Option<Arc<LockFile>>, TrustError> {
        let stamp = match fs::symlink_metadata(path) {
            Ok(metadata) => FileStamp {
                device: metadata.dev(),
                inode: metadata.ino(),
                size: metadata.size(),
                changed: (metadata.ctime(), metadata.ctime_nsec()),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => {
                return Err(TrustError::Io {
                    action: "read",
                    path: path.to_owned(),
                    source,
                });
            }
        };
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, lock)) = &*cached
            && *known == stamp
        {
            return Ok(Some(lock.clone()));
        }
        let lock = LockFile::read(path)?.map(Arc::new);
        // A file that was replaced while it was read has another stamp at the next run.
        *cached = lock.clone().map(|lock| (stamp, lock));
        Ok(lock)
    }
}
