//! The shared words of skillbox: names, paths, requests, limits, events, outcomes, reports and error codes.
//!
//! Every crate speaks in these types, from discovery to the final report. Values from outside become one of
//! them by its parser, and serde goes through the same parser, so a value that exists is a value that holds
//! its invariants. This crate does no I/O, starts nothing and knows no async runtime.

mod byte_size;
mod causes;
mod diagnostic;
mod digest;
mod enforcement;
mod error_code;
mod event;
mod exit_code;
mod identifier;
mod limits;
mod named_fields;
mod outcome;
mod rel_path;
mod report;
mod request;
mod skill_name;

pub use byte_size::{ByteSize, ByteSizeError};
pub use causes::with_causes;
pub use diagnostic::{Diagnostic, Severity};
pub use digest::{Digest, DigestError};
pub use enforcement::{Enforcement, Layer, LayerState, Tier};
pub use error_code::{ErrorBody, ErrorCode};
pub use event::{OutputBytes, RunEvent, Stream};
pub use exit_code::ExitCode;
pub use identifier::{IdentifierError, ProfileName, RunId, SessionId, TenantName};
pub use limits::Limits;
pub use outcome::{EndedBy, Outcome, Usage};
pub use rel_path::{RelPath, RelPathError};
pub use report::{ContentEncoding, OutputFile, RefusedOutput, RunReport, SavedArtifact, StagedInput};
pub use request::{ExecutorKind, InputMode, InputSpec, OutputSpec, RunRequest, Stdin};
pub use skill_name::{SkillName, SkillNameError};
