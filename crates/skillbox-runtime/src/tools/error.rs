//! Why a call was refused or failed. Then nothing of the state has changed.

use std::io;

use skillbox_loader::{Dialect, LoaderError};
use skillbox_model::{ErrorBody, ErrorCode, SkillName};

use crate::RunError;
use crate::session::SessionError;

/// A refused or failed call.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The skills, the policy or the arguments do not allow it.
    #[error(transparent)]
    Refused(#[from] LoaderError),
    /// The run was refused or failed on our side, or the session cannot be used.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A hook of a loaded skill stopped it.
    #[error("a hook of the skill {skill} stops the call of {tool:?}: {reason}")]
    Stopped {
        /// The skill whose hook it is.
        skill: SkillName,
        /// The tool.
        tool: String,
        /// What the hook said, or why it could say nothing.
        reason: String,
    },
    /// There is nothing to cancel the run with.
    #[error("the switch that cancels a run cannot be made: {0}")]
    Cancel(#[source] io::Error),
}

impl From<SessionError> for ToolError {
    fn from(error: SessionError) -> Self {
        Self::Run(error.into())
    }
}

impl ToolError {
    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Refused(error) => error.code(),
            Self::Run(error) => error.code(),
            Self::Stopped { .. } => ErrorCode::ToolNotAllowed,
            Self::Cancel(_) => ErrorCode::Internal,
        }
    }

    /// The error object in the words of a dialect.
    pub fn body(&self, dialect: Dialect) -> ErrorBody {
        match self {
            Self::Refused(error) => error.body(dialect),
            Self::Run(error) => error.body(),
            Self::Stopped { .. } => {
                let mut body = ErrorBody::new(self.code(), self.to_string());
                body.hint = Some("do what the hook asks for, or unload its skill".to_owned());
                body
            }
            Self::Cancel(_) => ErrorBody::new(self.code(), self.to_string()),
        }
    }
}
