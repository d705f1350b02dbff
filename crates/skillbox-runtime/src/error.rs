//! Errors of a run. A failing script is a report, not an error.

use skillbox_artifacts::StoreError;
use skillbox_executor::ExecutorError;
use skillbox_executor::job::RequestError;
use skillbox_executor::snapshot::SnapshotError;
use skillbox_executor::workspace::WorkspaceError;
use skillbox_model::{ErrorBody, ErrorCode, SkillName, with_causes};
use skillbox_repository::SkillReadError;

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
    /// The executor refused the run or failed.
    #[error(transparent)]
    Execution(#[from] ExecutorError),
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
            Self::Skill { .. } => ErrorCode::SkillUnreadable,
            Self::Session(error) => error.code(),
            Self::Store(error) => error.code(),
            Self::Workspace(error) if error.is_full() => ErrorCode::LimitExceeded,
            Self::Snapshot(_) | Self::Workspace(_) | Self::Collect(_) => ErrorCode::Storage,
            Self::Execution(error) => error.code(),
            Self::ExecutorNotConfigured { .. } => ErrorCode::ExecutorUnavailable,
        }
    }

    /// The error object for the caller; its message contains every cause.
    pub fn body(&self) -> ErrorBody {
        if let Self::Request(error) = self {
            return error.to_body();
        }
        let mut body = ErrorBody::new(self.code(), with_causes(self));
        match self {
            Self::Execution(error) => {
                body.hint = error.hint().or(body.hint);
                if body.code == ErrorCode::ProfileUnknown {
                    body = body.with_field("profile");
                }
            }
            Self::Store(error) => body.hint = error.hint().map(str::to_owned).or(body.hint),
            Self::ExecutorNotConfigured { hint, .. } => body.hint = Some(hint.clone()),
            _ => {}
        }
        body
    }
}
