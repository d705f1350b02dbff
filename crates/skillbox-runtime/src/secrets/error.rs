//! Why a run cannot have the secrets that it was granted.

use skillbox_executor::RedactorError;
use skillbox_model::{ErrorBody, ErrorCode, SecretName, with_causes};

use super::configured::SecretSourceError;

/// Why a run cannot have its secrets. It names the secret and never contains the value.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The secret is granted, and the host has none of this name.
    #[error("the secret {0} is granted, but not configured")]
    NotConfigured(SecretName),
    /// The source has no usable value.
    #[error("the secret {name} cannot be read")]
    Unreadable {
        /// The secret.
        name: SecretName,
        /// The cause.
        source: SecretSourceError,
    },
    /// The request contains the value, which only a grant may bring into a run.
    #[error("the value of {field} contains the value of the secret {name}")]
    ValueInRequest {
        /// The secret.
        name: SecretName,
        /// The field of the request.
        field: String,
    },
    /// The request sets the variable of a secret.
    #[error("{field} is the variable of the secret {name}")]
    VariableTaken {
        /// The secret.
        name: SecretName,
        /// The field of the request.
        field: String,
    },
    /// The secrets cannot be removed from the output.
    #[error(transparent)]
    Redactor(#[from] RedactorError),
    /// The run cannot get the secret in the configured way.
    #[error("the secret {name} cannot be used here: {reason}")]
    NotInjectable {
        /// The secret.
        name: SecretName,
        /// The reason.
        reason: &'static str,
        /// The remedy.
        hint: &'static str,
    },
}

impl SecretError {
    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NotConfigured(_) | Self::Unreadable { .. } => ErrorCode::SecretMissing,
            Self::ValueInRequest { .. } => ErrorCode::SecretNotGranted,
            Self::VariableTaken { .. } => ErrorCode::InvalidRequest,
            Self::Redactor(_) => ErrorCode::LimitExceeded,
            Self::NotInjectable { .. } => ErrorCode::ExecutorUnavailable,
        }
    }

    /// The error object for the caller.
    pub fn body(&self) -> ErrorBody {
        let mut body = ErrorBody::new(self.code(), with_causes(self));
        match self {
            Self::NotConfigured(name) => {
                body.hint = Some(format!("add `[secrets.{name}]` to the configuration of the host"));
            }
            Self::Unreadable { name, .. } => {
                body.hint = Some(format!(
                    "correct `from` of `[secrets.{name}]`; `skillbox secrets check` tries every source"
                ));
            }
            Self::ValueInRequest { name, field } => {
                body.hint = Some(format!(
                    "leave it out; the operator grants the secret with `--secret {name}`"
                ));
                body.field = Some(field.clone());
            }
            Self::VariableTaken { field, .. } => {
                body.hint = Some("choose another name for the variable".to_owned());
                body.field = Some(field.clone());
            }
            Self::Redactor(_) => body.hint = Some("grant fewer secrets to the run".to_owned()),
            Self::NotInjectable { hint, .. } => body.hint = Some((*hint).to_owned()),
        }
        body
    }
}
