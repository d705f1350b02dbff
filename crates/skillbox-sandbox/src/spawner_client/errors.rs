//! The errors of requests to the spawner.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use skillbox_model::ErrorCode;

/// The maximum time for one answer of the spawner.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Why a request to the spawner failed.
#[derive(Debug, thiserror::Error)]
pub enum SpawnerError {
    /// The program of the spawner could not be started.
    #[error("cannot start the spawner {}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The spawner could not be forked.
    #[error("cannot fork the spawner")]
    Fork(#[source] io::Error),
    /// The spawner has exited.
    #[error("the spawner has exited")]
    Exited,
    /// The spawner did not answer in time.
    #[error("the spawner did not answer within {} s", ANSWER_TIMEOUT.as_secs())]
    TimedOut,
    /// The socket of the spawner failed.
    #[error("cannot communicate with the spawner")]
    Socket(#[source] io::Error),
    /// The spawner could not serve the request.
    #[error("the spawner cannot {what}")]
    Refused {
        /// The operation that failed, worded to follow "cannot".
        what: String,
        /// The cause.
        source: io::Error,
    },
}

/// Why a launch failed.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// A step of the plan failed.
    #[error("step {number} of the plan failed, {what}: {step}")]
    Step {
        /// The number of the step.
        number: u16,
        /// The step, as the plan prints it.
        step: String,
        /// The operation that failed, worded to follow "cannot".
        what: String,
        /// The stable code of the failure.
        code: ErrorCode,
        /// The kernel error.
        source: io::Error,
    },
    /// The request to the spawner failed.
    #[error(transparent)]
    Spawner(#[from] SpawnerError),
}

impl LaunchError {
    /// The stable error code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Step { code, .. } => *code,
            Self::Spawner(_) => ErrorCode::ExecutorUnavailable,
        }
    }
}
