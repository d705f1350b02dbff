//! Errors of the history.

use std::io;
use std::path::{Path, PathBuf};

use skillbox_model::{ErrorCode, RunId};

/// Why the history cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// A file cannot be used.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The attempted operation.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// No run has this id.
    #[error("unknown run {0}")]
    Unknown(RunId),
    /// The run has ended already.
    #[error("the run {0} has ended already")]
    Ended(RunId),
    /// The run has not ended.
    #[error("the run {0} has not ended; kill it first")]
    Running(RunId),
    /// The run did not end in time after it was killed.
    #[error("the run {0} was cancelled, but has not ended yet")]
    StillRunning(RunId),
}

impl HistoryError {
    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Io { .. } => ErrorCode::Storage,
            Self::Unknown(_) | Self::Ended(_) => ErrorCode::RunUnknown,
            Self::Running(_) | Self::StillRunning(_) => ErrorCode::Busy,
        }
    }

    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}
