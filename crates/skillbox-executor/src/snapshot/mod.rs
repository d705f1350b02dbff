//! Frozen skills: what was hashed is what is mounted, whatever happens to the source meanwhile.

mod store;
mod writer;

pub use store::{Snapshot, SnapshotError, SnapshotStore};
pub use writer::SnapshotWriter;
