//! Snapshots of skills: what was hashed is what is mounted, even if the source changes.

mod store;
mod writer;

pub use store::{Snapshot, SnapshotError, SnapshotStore};
pub use writer::SnapshotWriter;
