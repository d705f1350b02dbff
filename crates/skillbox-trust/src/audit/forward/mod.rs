//! Forwarding of the log: the records that a receiver does not have yet, and a durable cursor behind those it has.
//!
//! Each record is forwarded at least once and in order. After a crash, some are forwarded again: `metadata.sequence`
//! identifies them. Records that are missing from the log are reported, never skipped silently.

mod cursor;
mod pending;
mod status;

pub(super) use cursor::first_unforwarded_file;
pub use pending::{AuditForward, BatchLimit, ForwardBatch, MissingRecords};
pub use status::{ForwardStatus, forward_status};
