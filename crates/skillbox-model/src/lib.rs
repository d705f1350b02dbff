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
mod grants;
mod host;
mod host_pattern;
mod identifier;
mod limits;
mod network_report;
mod outcome;
mod rel_path;
mod report;
mod request;
mod request_rule;
mod secret;
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
pub use grants::{Grants, SecretName, SecretNameError};
pub use host::Host;
pub use host_pattern::{DEFAULT_PORT, HostError, HostName, HostPattern, HostPort};
pub use identifier::{IdentifierError, JobId, ProfileName, PublisherName, RunId, SessionId, TenantName};
pub use limits::Limits;
pub use network_report::{NetworkConnection, NetworkDenial, NetworkReport};
pub use outcome::{EndedBy, ResourceUsage, RunOutcome};
pub use rel_path::{RelPath, RelPathError};
pub use report::{
    ContentEncoding, EnvironmentReport, OutputFile, RefusedOutput, RunReport, SavedArtifact, StagedInput,
};
pub use request::{ExecutorKind, InputMode, InputSpec, OutputSpec, RunRequest, Stdin};
pub use request_rule::{HostRule, PathPattern, RequestMethod, RequestPath, RequestRule, RequestRuleError};
pub use secret::{GrantedSecret, SecretInjection, SecretValue, SecretValueError};
pub use skill_name::{SkillName, SkillNameError};
pub use with_causes::with_causes;
