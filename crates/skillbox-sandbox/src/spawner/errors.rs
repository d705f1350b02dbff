//! Why the spawner gave no answer, or no sandbox.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use skillbox_model::ErrorCode;

/// The longest that the spawner may take for an answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Why the spawner gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum SpawnerError {
    /// It could not be started.
    #[error("cannot start the spawner {}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// It could not be forked.
    #[error("cannot fork the spawner")]
    Fork(#[source] io::Error),
    /// It is dead.
    #[error("the spawner is gone")]
    Gone,
    /// It said nothing for too long.
    #[error("the spawner gave no answer within {} s", PATIENCE.as_secs())]
    Silent,
    /// It could not be spoken to.
    #[error("cannot speak to the spawner")]
    Socket(#[source] io::Error),
    /// It could not do what was asked.
    #[error("the spawner cannot {what}")]
    Refused {
        /// What was tried.
        what: String,
        /// The cause.
        source: io::Error,
    },
}

/// Why there is no sandbox.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// A step of the plan failed.
    #[error("step {number} of the plan failed, {what}: {step}")]
    Step {
        /// The step's number.
        number: u16,
        /// The step, as the plan prints it.
        step: String,
        /// What was tried.
        what: String,
        /// What a caller can do about it.
        code: ErrorCode,
        /// The kernel's error.
        source: io::Error,
    },
    /// The spawner failed.
    #[error(transparent)]
    Spawner(#[from] SpawnerError),
}

impl LaunchError {
    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Step { code, .. } => *code,
            Self::Spawner(_) => ErrorCode::ExecutorUnavailable,
        }
    }
}
