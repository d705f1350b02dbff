//! Errors of the files that decisions depend on.

use std::io;
use std::path::{Path, PathBuf};

use skillbox_model::ErrorCode;

/// Why a file of the trust directory, a lock file or a key cannot be used. Nothing is ever treated as "no policy".
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// A file operation failed.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The attempted operation.
        action: &'static str,
        /// The affected path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file does not have the documented form.
    #[error("{}{} is invalid: {problem}", path.display(), line_suffix(*line))]
    Malformed {
        /// The code for a run that depends on the file.
        code: ErrorCode,
        /// The file.
        path: PathBuf,
        /// The line, if known.
        line: Option<usize>,
        /// What is wrong, and the fix.
        problem: String,
    },
    /// Somebody without the host key wrote or changed the file.
    #[error("{} is not authentic: {problem}", path.display())]
    NotAuthentic {
        /// The code for a run that depends on the file.
        code: ErrorCode,
        /// The file.
        path: PathBuf,
        /// What is wrong, and the fix.
        problem: String,
    },
    /// Other users can read or change a file that must be private.
    #[error("{} is not private: {problem}", path.display())]
    NotPrivate {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong, and the fix.
        problem: String,
    },
    /// The audit log has reached its size, and the receiver does not have its oldest records yet.
    #[error(
        "the audit log {} is full of records that are not forwarded yet; see `skillbox audit status`",
        path.display()
    )]
    NotForwarded {
        /// The directory of the log.
        path: PathBuf,
    },
    /// Another process held a lock for too long.
    #[error("{} stayed locked by another process for {seconds} s", path.display())]
    Locked {
        /// The lock.
        path: PathBuf,
        /// How long this process waited.
        seconds: u64,
    },
}

fn line_suffix(line: Option<usize>) -> String {
    line.map(|line| format!(":{line}")).unwrap_or_default()
}

impl TrustError {
    /// The stable code for a run that is refused because of this error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Malformed { code, .. } | Self::NotAuthentic { code, .. } => *code,
            Self::Locked { .. } => ErrorCode::Busy,
            Self::Io { .. } | Self::NotPrivate { .. } | Self::NotForwarded { .. } => ErrorCode::Storage,
        }
    }

    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }

    pub(crate) fn json(code: ErrorCode, path: &Path, error: &serde_json::Error) -> Self {
        Self::Malformed {
            code,
            path: path.to_owned(),
            line: (error.line() > 0).then(|| error.line()),
            problem: error.to_string(),
        }
    }
}
