//! Why a job could not be run in a container. A failing script is not among the reasons.

use std::io;

use skillbox_model::ErrorCode;
use skillbox_runner::FrameError;
use skillbox_sandbox::PlanError;

use crate::workspace::WorkspaceError;

/// Our own failure, never the script's.
#[derive(Debug, thiserror::Error)]
pub enum DockerError {
    /// Nobody answers where the daemon should be.
    #[error("the Docker daemon does not answer at {host}")]
    Unreachable {
        /// Where it was looked for.
        host: String,
        /// Why not.
        source: Box<bollard::errors::Error>,
    },
    /// The address of the daemon is of no use.
    #[error("{host:?} is no address of a Docker daemon")]
    Address {
        /// What was given.
        host: String,
    },
    /// The daemon speaks an interface from before what a run needs.
    #[error("the Docker daemon at {host} speaks API {found}, and runs need {needed}")]
    Outdated {
        /// Where it is.
        host: String,
        /// What it speaks.
        found: String,
        /// What is needed.
        needed: &'static str,
    },
    /// The image is not there.
    #[error("the image {image} is missing")]
    ImageMissing {
        /// Its name.
        image: String,
    },
    /// The image has no runner, or another one.
    #[error("the image {image} cannot be used: {reason}")]
    ImageUnfit {
        /// Its name.
        image: String,
        /// Why not.
        reason: String,
    },
    /// The daemon's disk is full.
    #[error("the Docker daemon has no room left: {message}")]
    Full {
        /// What it said.
        message: String,
    },
    /// The daemon or the container went away under a run.
    #[error("the container was lost {during}: {cause}")]
    Lost {
        /// When.
        during: &'static str,
        /// What is known about it.
        cause: String,
    },
    /// The daemon refused something.
    #[error("the Docker daemon refused to {action}")]
    Api {
        /// What was asked.
        action: &'static str,
        /// What it said.
        source: Box<bollard::errors::Error>,
    },
    /// The daemon took too long.
    #[error("the Docker daemon did not {action} in time")]
    TooSlow {
        /// What was asked.
        action: &'static str,
    },
    /// The run is refused: the container lacks what the profile requires.
    #[error(transparent)]
    Isolation(PlanError),
    /// What goes into the workspace does not fit.
    #[error("the inputs do not fit the workspace: {reason}")]
    TooMuch {
        /// Where it ended.
        reason: String,
    },
    /// Pid 1 of the container would not start.
    #[error("the runner refused the job: {reason}")]
    Refused {
        /// Why.
        reason: String,
    },
    /// Pid 1 of the container talks nonsense.
    #[error("the runner does not speak as agreed")]
    Speech(#[from] FrameError),
    /// The image could not be built.
    #[error("the image could not be built: {message}")]
    Build {
        /// The last words of the build.
        message: String,
    },
    /// The host's side of the workspace failed.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// What came back could not be written down.
    #[error("cannot write down what came back")]
    Place(#[from] skillbox_runner::PlaceError),
    /// A descriptor or a thread of our own.
    #[error("cannot {action}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl DockerError {
    /// The stable code of this error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Unreachable { .. } | Self::Address { .. } | Self::TooSlow { .. } => ErrorCode::ExecutorUnavailable,
            Self::Outdated { .. } => ErrorCode::ExecutorOutdated,
            Self::ImageMissing { .. } | Self::ImageUnfit { .. } => ErrorCode::ImageMissing,
            Self::Full { .. } => ErrorCode::ExecutorFull,
            Self::Lost { .. } => ErrorCode::ExecutorLost,
            Self::Isolation(error) => error.code(),
            Self::TooMuch { .. } => ErrorCode::LimitExceeded,
            Self::Workspace(_) | Self::Place(_) => ErrorCode::Storage,
            Self::Api { .. } | Self::Build { .. } => ErrorCode::ExecutorUnavailable,
            Self::Refused { .. } | Self::Speech(_) | Self::Io { .. } => ErrorCode::Internal,
        }
    }

    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Unreachable { source, .. } if is_denied(source) => {
                "this user may not talk to the daemon: add it to the group `docker`, or use `--executor local`"
            }
            Self::Unreachable { .. } | Self::TooSlow { .. } => {
                "start the Docker daemon, or say where it is with `--docker-host`; `--executor local` needs none"
            }
            Self::Address { .. } => "write `unix:///path/to/docker.sock` or `tcp://host:port`",
            Self::ImageMissing { .. } | Self::ImageUnfit { .. } => "run `skillbox docker build-runner`",
            Self::Build { .. } => "without a network, give a base that has bash and python3: `--base IMAGE`",
            Self::Isolation(error) => return error.hint(),
            _ => return None,
        };
        Some(text.to_owned())
    }

    pub(super) fn io(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, source }
    }

    /// What an answer of the daemon means.
    pub(super) fn of_api(action: &'static str, host: &str, image: &str, source: bollard::errors::Error) -> Self {
        use bollard::errors::Error;
        if let Error::DockerResponseServerError { status_code, message } = &source {
            if message.contains("no space left on device") {
                return Self::Full {
                    message: message.clone(),
                };
            }
            if *status_code == 404 && message.to_lowercase().contains("no such image") {
                return Self::ImageMissing {
                    image: image.to_owned(),
                };
            }
            if message.contains(super::image::RUNNER) && message.contains("no such file") {
                return Self::ImageUnfit {
                    image: image.to_owned(),
                    reason: "it has no runner".to_owned(),
                };
            }
            let source = Box::new(source);
            return Self::Api { action, source };
        }
        Self::Unreachable {
            host: host.to_owned(),
            source: Box::new(source),
        }
    }
}

fn is_denied(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let io = error.downcast_ref::<io::Error>();
        if io.is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
            return true;
        }
        cause = error.source();
    }
    false
}
