//! The space that the content of a store may use on a local disk.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::StoreError;

/// How long a count is used. Other processes may write to the same store, and content may be removed.
const COUNT_LIFETIME: Duration = Duration::from_secs(10);

/// A quota for one directory of blobs.
#[derive(Clone, Debug)]
pub(crate) struct BlobQuota {
    max_bytes: u64,
    count: Arc<Mutex<Option<Count>>>,
}

#[derive(Clone, Copy, Debug)]
struct Count {
    bytes: u64,
    counted: Instant,
}

impl BlobQuota {
    pub fn new(max_bytes: u64) -> Self {
        Self {
            max_bytes,
            count: Arc::default(),
        }
    }

    pub fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// The bytes that can be added. `count_used` counts those that are stored.
    pub fn bytes_left(&self, count_used: impl FnOnce() -> Result<u64, StoreError>) -> Result<u64, StoreError> {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let left = |count: &Count| self.max_bytes.saturating_sub(count.bytes);
        if let Some(known) = count.as_ref().filter(|known| known.counted.elapsed() < COUNT_LIFETIME)
            && left(known) > 0
        {
            return Ok(left(known));
        }
        let counted = Count {
            bytes: count_used()?,
            counted: Instant::now(),
        };
        *count = Some(counted);
        Ok(left(&counted))
    }

    /// Counts bytes that are about to be added, unless they exceed the quota together with what others added meanwhile.
    /// Returns whether they may be added.
    pub fn claim(&self, bytes: u64) -> bool {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(count) = count.as_mut() else { return true };
        let total = count.bytes.saturating_add(bytes);
        let is_within = total <= self.max_bytes;
        if is_within {
            count.bytes = total;
        }
        is_within
    }
}

/// The bytes that a file uses on the disk; 0 if it does not exist any more.
pub(crate) fn allocated_bytes(path: &std::path::Path) -> io::Result<u64> {
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(found.blocks().saturating_mul(512)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}
