//! Errors of sessions.

use std::io;
use std::path::{Path, PathBuf};

use skillbox_model::{ErrorCode, SessionId};

/// The reason why a session cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// No session has this name, or it was removed.
    #[error("no session {0} is stored")]
    Unknown(SessionId),
    /// A session to be created exists already.
    #[error("the session {0} exists already")]
    Exists(SessionId),
    /// Another run of the same session is in progress.
    #[error("the session {0} is in use by another run")]
    Busy(SessionId),
    /// A file of the session does not parse.
    #[error("{} is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The parse error.
        source: serde_json::Error,
    },
    /// A file operation failed.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The operation.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl SessionError {
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }

    /// The same error, or [`SessionError::Unknown`] if a file of the session is missing because the session was removed.
    #[must_use]
    pub fn or_unknown(self, id: &SessionId) -> Self {
        match self {
            Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => Self::Unknown(id.clone()),
            error => error,
        }
    }

    /// The stable code of this error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Unknown(_) => ErrorCode::SessionUnknown,
            Self::Exists(_) => ErrorCode::AlreadyExists,
            Self::Busy(_) => ErrorCode::Busy,
            Self::Damaged { .. } | Self::Io { .. } => ErrorCode::Storage,
        }
    }
}
