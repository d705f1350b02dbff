//! Snapshots of skills: what was hashed is what is mounted, even if the source changes.

mod collection;
mod hidden_entries;
mod retention;
mod store;
mod use_lock;
mod writer;

pub use retention::{SnapshotRetention, SnapshotUsage};
pub use store::{Snapshot, SnapshotError, SnapshotStore};
pub use use_lock::{UseLock, remove_if_unused};
pub use writer::SnapshotWriter;
