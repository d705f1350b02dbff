//! What can go wrong with a session.

use std::io;
use std::path::{Path, PathBuf};

use skillbox_model::{ErrorCode, SessionId};

/// Why a session could not be used.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Nobody has used that name, or it was removed.
    #[error("no session {0} is stored")]
    Unknown(SessionId),
    /// It is there already, and a new one was asked for.
    #[error("the session {0} exists already")]
    Exists(SessionId),
    /// Another run of the same session is going on.
    #[error("the session {0} is in use by another run")]
    Busy(SessionId),
    /// A file of the session does not parse.
    #[error("{} is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The disk said no.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl SessionError {
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
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
