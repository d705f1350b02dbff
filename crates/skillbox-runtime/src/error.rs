//! Errors of a run. A failing script is a report, not an error.

use skillbox_artifacts::StoreError;
use skillbox_executor::ExecutorError;
use skillbox_executor::Redactor;
use skillbox_executor::job::RequestError;
use skillbox_executor::snapshot::SnapshotError;
use skillbox_executor::workspace::WorkspaceError;
use skillbox_model::{ErrorBody, ErrorCode, SkillName, with_causes};
use skillbox_repository::SkillReadError;
use skillbox_trust::{ManifestError, Refusal, TrustError};

use crate::environment::EnvironmentError;
use crate::secrets::SecretError;
use crate::session::SessionError;

/// The reason why skillbox refused a run, or failed to carry it out.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The request is invalid.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The skill cannot be read.
    #[error("the skill {skill} cannot be read")]
    Skill {
        /// The skill.
        skill: SkillName,
        /// The cause.
        source: SkillReadError,
    },
    /// The files of the skill cannot be listed.
    #[error("the files of the skill {skill} cannot be listed")]
    UnlistableSkill {
        /// The skill.
        skill: SkillName,
        /// The cause.
        source: ManifestError,
    },
    /// The host does not let the skill run.
    #[error("{refusal}{}", comparison.as_ref().map(|text| format!("; {text}")).unwrap_or_default())]
    Refused {
        /// The reason.
        refusal: Box<Refusal>,
        /// The nearest version that may run, and the first file that differs.
        comparison: Option<String>,
    },
    /// An approval, the lock file, the host key or the audit log cannot be used.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The command of a hook is not in the version of the skill that may run.
    #[error("the agent has loaded a hook of the skill {skill} that the current version of the skill does not have")]
    StaleHook {
        /// The skill.
        skill: SkillName,
    },
    /// An input cannot be read for its audit record.
    #[error("the inputs cannot be read for the audit log")]
    InputDigest(#[source] std::io::Error),
    /// The session cannot be used.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The artifact store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The snapshot of a skill cannot be written or read.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The workspace cannot be created or filled.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The outputs cannot be collected.
    #[error("the outputs cannot be collected")]
    Collect(#[source] std::io::Error),
    /// The state directory cannot be read.
    #[error("the state directory cannot be read")]
    State(#[source] std::io::Error),
    /// The executor refused the run or failed.
    #[error(transparent)]
    Execution(#[from] ExecutorError),
    /// The run cannot have its secrets.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The error of a run with secrets, whose values are removed from it.
    #[error("{}", .0.message)]
    Redacted(Box<ErrorBody>),
    /// The run cannot have its packages.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// The executor is not configured.
    #[error("{message}")]
    ExecutorNotConfigured {
        /// Which executor is missing.
        message: String,
        /// The remedy.
        hint: String,
    },
}

impl RunError {
    /// The stable code of this error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Request(error) => error.code,
            Self::Skill {
                source: SkillReadError::Cancelled(_),
                ..
            } => ErrorCode::Cancelled,
            Self::Skill { .. } | Self::UnlistableSkill { .. } => ErrorCode::SkillUnreadable,
            Self::Refused { refusal, .. } => refusal.code(),
            Self::Trust(error) => error.code(),
            Self::StaleHook { .. } => ErrorCode::NotApproved,
            Self::Session(error) => error.code(),
            Self::Store(error) => error.code(),
            Self::Workspace(error) if error.is_full() => ErrorCode::LimitExceeded,
            Self::Snapshot(_) | Self::Workspace(_) | Self::Collect(_) | Self::State(_) | Self::InputDigest(_) => {
                ErrorCode::Storage
            }
            Self::Execution(error) => error.code(),
            Self::Secret(error) => error.code(),
            Self::Redacted(body) => body.code,
            Self::Environment(error) => error.code(),
            Self::ExecutorNotConfigured { .. } => ErrorCode::ExecutorUnavailable,
        }
    }

    /// The error without the values of secrets.
    pub(crate) fn without_values(self, redactor: &Redactor) -> Self {
        if redactor.is_empty() {
            return self;
        }
        let body = self.body();
        let redact = |text: &String| redactor.redact_text(text).into_owned();
        let redacted = ErrorBody {
            code: body.code,
            message: redact(&body.message),
            hint: body.hint.as_ref().map(redact),
            field: body.field.as_ref().map(redact),
        };
        if redacted == body {
            self
        } else {
            Self::Redacted(Box::new(redacted))
        }
    }

    /// The error object for the caller; its message contains every cause.
    pub fn body(&self) -> ErrorBody {
        if let Self::Request(error) = self {
            return error.to_body();
        }
        if let Self::Secret(error) = self {
            return error.body();
        }
        if let Self::Redacted(body) = self {
            return (**body).clone();
        }
        let mut body = ErrorBody::new(self.code(), with_causes(self));
        match self {
            Self::Execution(error) => {
                body.hint = error.hint().or(body.hint);
                if body.code == ErrorCode::ProfileUnknown {
                    body = body.with_field("profile");
                }
            }
            Self::Environment(error) => body.hint = error.hint().or(body.hint),
            Self::Store(error) => body.hint = error.hint().map(str::to_owned).or(body.hint),
            Self::ExecutorNotConfigured { hint, .. } => body.hint = Some(hint.clone()),
            Self::StaleHook { .. } => body.hint = Some("load the skill again".to_owned()),
            Self::Refused { refusal, .. } => body.hint = Some(refusal.fix()),
            _ => {}
        }
        body
    }
}
