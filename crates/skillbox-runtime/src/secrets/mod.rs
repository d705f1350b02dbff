//! Secrets of runs: which are configured, which a run has, and how their values stay out of everything that leaves it.

mod configured;
mod error;
mod outputs;
mod redact_json;
mod run_secrets;

pub(crate) use configured::SecretStore;
pub use configured::{ConfiguredSecret, ConfiguredSecrets, ReadSecret, SecretSourceError, SkillSelector};
pub use error::SecretError;
pub(crate) use outputs::{redact_outputs, warn_about_files};
pub(crate) use redact_json::{redact_report, redact_request};
pub(crate) use run_secrets::RunSecrets;
