//! Errors of tool calls. A call that fails changes no state.

use std::io;

use skillbox_loader::{Dialect, LoaderError};
use skillbox_model::{ErrorBody, ErrorCode, SkillName};

use crate::RunError;
use crate::session::SessionError;

/// The reason why a tool call was refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The skills, the policy or the arguments do not allow the call.
    #[error(transparent)]
    Refused(#[from] LoaderError),
    /// The run was refused or failed, or the session cannot be used.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A hook of a loaded skill blocked the call.
    #[error("a hook of the skill {skill} blocks the call of {tool:?}: {reason}")]
    BlockedByHook {
        /// The skill that declares the hook.
        skill: SkillName,
        /// The tool.
        tool: String,
        /// The hook's reason, or why it could not run.
        reason: String,
    },
    /// Too many forks have not returned.
    #[error("the limit of {limit} forked skills that have not returned a result is reached")]
    ForkLimit {
        /// The limit.
        limit: usize,
    },
    /// The session is not the fork of another.
    #[error("this session is not a fork, so it has no session to return a result to")]
    NotAFork,
    /// A fork returns one result only.
    #[error("this session has returned its result already")]
    AlreadyReturned,
    /// The data of an event or the result of a fork is too large.
    #[error("{field} has {size} bytes, more than the {limit} allowed")]
    TooLarge {
        /// The argument.
        field: &'static str,
        /// Its size in bytes.
        size: usize,
        /// The largest size.
        limit: usize,
    },
    /// The cancel token of a run cannot be created.
    #[error("cannot create the cancel token of the run: {0}")]
    CancelToken(#[source] io::Error),
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
            Self::BlockedByHook { .. } => ErrorCode::ToolNotAllowed,
            Self::ForkLimit { .. } => ErrorCode::LoadLimit,
            Self::NotAFork => ErrorCode::InvalidRequest,
            Self::AlreadyReturned => ErrorCode::AlreadyExists,
            Self::TooLarge { .. } => ErrorCode::LimitExceeded,
            Self::CancelToken(_) => ErrorCode::Internal,
        }
    }

    /// The error object, with the messages of a dialect.
    pub fn body(&self, dialect: Dialect) -> ErrorBody {
        match self {
            Self::Refused(error) => error.to_error_body(dialect),
            Self::Run(error) => error.body(),
            Self::BlockedByHook { .. } => {
                let mut body = ErrorBody::new(self.code(), self.to_string());
                body.hint = Some("follow the hook's reason, or unload its skill".to_owned());
                body
            }
            Self::ForkLimit { .. } => {
                let mut body = ErrorBody::new(self.code(), self.to_string());
                body.hint = Some("return the result of one with `return_result`, or remove its session".to_owned());
                body
            }
            Self::TooLarge { field, .. } => ErrorBody::new(self.code(), self.to_string()).with_field(*field),
            Self::NotAFork | Self::AlreadyReturned | Self::CancelToken(_) => {
                ErrorBody::new(self.code(), self.to_string())
            }
        }
    }
}
