//! Why the spawner gave no answer, or no sandbox.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use skillbox_model::ErrorCode;

/// The longest time that the spawner may take for an answer.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Why the spawner gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum SpawnerError {
    /// The program could not be started.
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
        /// The operation that failed.
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
        /// The number of the step.
        number: u16,
        /// The step, as the plan prints it.
        step: String,
        /// The operation that failed.
        what: String,
        /// The stable code of the failure.
        code: ErrorCode,
        /// The error of the kernel.
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
