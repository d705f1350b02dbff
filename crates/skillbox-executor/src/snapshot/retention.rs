//! The rules for the removal of old snapshots, and the result of it.

use std::time::Duration;

use skillbox_model::ByteSize;

/// Which snapshots are kept. Those in use are kept in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotRetention {
    /// A snapshot that was not used for this long is removed.
    pub max_age: Duration,
    /// Snapshots are removed, the longest unused first, until the others use at most this much space.
    pub max_bytes: ByteSize,
}

impl Default for SnapshotRetention {
    fn default() -> Self {
        Self {
            max_age: Duration::from_secs(30 * 24 * 3600),
            max_bytes: ByteSize(4 << 30),
        }
    }
}

/// A number of snapshots and the space that they use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct SnapshotUsage {
    /// The number of snapshots.
    pub snapshots: usize,
    /// The bytes that they use on the disk.
    pub bytes: u64,
}
