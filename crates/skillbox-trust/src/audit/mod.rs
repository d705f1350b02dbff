//! The audit log: JSON lines with OCSF names, a hash chain, and signed checkpoints.

mod attestation;
mod chain_anchor;
mod clock;
mod event;
mod export;
mod forward;
mod head;
mod log;
mod log_files;
mod open_runs;
mod record_id;
mod verify;

pub use chain_anchor::has_log;
pub use event::{
    AuditEvent, Caller, FileDigest, ManagedEntity, ManagementActivity, RequestFacts, RunDescription, RunEnd,
};
pub use export::{ExportFormat, export_records, visit_records};
pub use forward::{AuditForward, BatchLimit, ForwardBatch, ForwardStatus, MissingRecords, forward_status};
pub use log::{AuditLog, AuditMode, AuditRun, AuditSettings};
pub use record_id::RecordId;
pub use verify::{BadRecord, LogKey, VerifyReport, verify_log, verify_log_with};
