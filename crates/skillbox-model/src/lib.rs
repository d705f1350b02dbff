//! The types that all crates of skillbox share: names, paths, requests, limits, events, outcomes, reports and error codes.
//!
//! Values from outside enter through a type's parser, and serde uses the same parser, so every value satisfies the
//! invariants of its type. This crate does no I/O, starts no process and does not depend on an async runtime.

mod byte_size;
mod diagnostic;
mod digest;
mod enforcement;
mod error_code;
mod event;
mod exit_code;
mod identifier;
mod limits;
mod outcome;
mod rel_path;
mod report;
mod request;
mod skill_name;
mod strict_object;
mod with_causes;

pub use byte_size::{ByteSize, ByteSizeError};
pub use diagnostic::{Diagnostic, Severity};
pub use digest::{Digest, DigestError};
pub use enforcement::{Enforcement, Layer, LayerState, Tier};
pub use error_code::{ErrorBody, ErrorCode};
pub use event::{OutputBytes, RunEvent, Stream};
pub use exit_code::ExitCode;
pub use identifier::{IdentifierError, ProfileName, RunId, SessionId, TenantName};
pub use limits::Limits;
pub use outcome::{EndedBy, ResourceUsage, RunOutcome};
pub use rel_path::{RelPath, RelPathError};
pub use report::{ContentEncoding, OutputFile, RefusedOutput, RunReport, SavedArtifact, StagedInput};
pub use request::{ExecutorKind, InputMode, InputSpec, OutputSpec, RunRequest, Stdin};
pub use skill_name::{SkillName, SkillNameError};
pub use with_causes::with_causes;
