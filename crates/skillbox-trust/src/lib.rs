//! Decides which skills may run and with which grants, and records what ran.
//!
//! In the path of a run, `decide` follows the freezing of the skill: it takes the digest of the snapshot, approvals,
//! lock file and signatures, and returns grants or a refusal. `audit` writes one record before the script starts and
//! one after it ended. This crate never runs anything, never reads a workspace and never uses the network.

mod approvals;
mod audit;
mod decide;
mod declared_needs;
mod error;
mod host_key;
mod lock_file;
mod manifest;
mod private_file;
mod signatures;
mod tagged_file;

pub use approvals::{
    Approval, ApprovalList, ApprovalState, ApprovalStore, Revocation, export_approvals, read_exported_approvals,
};
pub use audit::{
    AuditEvent, AuditForward, AuditLog, AuditMode, AuditRun, AuditSettings, BadRecord, BatchLimit, Caller,
    ExportFormat, FileDigest, ForwardBatch, ForwardStatus, LogKey, ManagedEntity, ManagementActivity, MissingRecords,
    RecordId, RequestFacts, RunDescription, RunEnd, VerifyReport, export_records, forward_status, has_log, verify_log,
    verify_log_with, visit_records,
};
pub use decide::{
    Decision, DecisionInput, DenyEntry, DenyEntryError, Refusal, RefusalReason, TrustMode, TrustPolicy,
    approve_command, decide,
};
pub use declared_needs::{NETWORK_KEY, NeedsError, SECRETS_KEY, parse_declared_needs};
pub use error::TrustError;
pub use host_key::{HostKey, public_key_path, read_public_key};
pub use lock_file::{LOCK_FILE_NAME, LockDifference, LockFile, LockedSkill};
pub use manifest::{ChangeKind, FileChange, FileKind, MAX_FILES, ManifestError, ManifestFile, SkillManifest};
pub use signatures::{
    BUNDLE_FILE, BundleSigner, MANIFEST_FILE, MANIFEST_SIGNATURE_FILE, Publisher, SignatureError, SignatureFiles,
    SignatureMethod, SignatureStatus, ValidSignature, check_signatures, sign_bundle, sign_manifest,
};
