//! Why a job could not run in a container. A failing script is not an error.

use std::io;

use skillbox_model::ErrorCode;
use skillbox_runner::FrameError;
use skillbox_sandbox::PlanError;

use crate::workspace::WorkspaceError;

/// A failure of the Docker executor.
#[derive(Debug, thiserror::Error)]
pub enum DockerError {
    /// The daemon does not answer.
    #[error("the Docker daemon does not answer at {host}")]
    Unreachable {
        /// Its address.
        host: String,
        /// The cause.
        source: Box<bollard::errors::Error>,
    },
    /// The address of the daemon is invalid.
    #[error("{host:?} is not an address of a Docker daemon")]
    Address {
        /// The given address.
        host: String,
    },
    /// The daemon's API is too old.
    #[error("the Docker daemon at {host} has API version {found}; runs need at least {needed}")]
    ApiOutdated {
        /// The address of the daemon.
        host: String,
        /// The API version of the daemon.
        found: String,
        /// The minimum API version.
        needed: &'static str,
    },
    /// The image does not exist.
    #[error("the image {image} is missing")]
    ImageMissing {
        /// Its name.
        image: String,
    },
    /// The image has no runner, or one of another version.
    #[error("the image {image} cannot be used: {reason}")]
    ImageUnusable {
        /// Its name.
        image: String,
        /// The reason.
        reason: String,
    },
    /// The daemon's disk is full.
    #[error("the Docker daemon has no disk space left: {message}")]
    DiskFull {
        /// The daemon's message.
        message: String,
    },
    /// The daemon or the container disappeared.
    #[error("the container was lost {during}: {cause}")]
    ContainerLost {
        /// The phase of the run.
        during: &'static str,
        /// The known cause.
        cause: String,
    },
    /// The daemon refused a request.
    #[error("the Docker daemon refused to {action}")]
    Api {
        /// The requested action.
        action: &'static str,
        /// The daemon's answer.
        source: Box<bollard::errors::Error>,
    },
    /// The daemon did not answer in time.
    #[error("the Docker daemon did not {action} in time")]
    Timeout {
        /// The requested action.
        action: &'static str,
    },
    /// The container lacks isolation that the profile requires.
    #[error(transparent)]
    Isolation(PlanError),
    /// The inputs do not fit into the workspace.
    #[error("the inputs do not fit into the workspace: {reason}")]
    InputsTooLarge {
        /// The reason.
        reason: String,
    },
    /// Pid 1 of the container refused the job.
    #[error("the runner refused the job: {reason}")]
    JobRefused {
        /// The reason.
        reason: String,
    },
    /// Pid 1 of the container violated the protocol.
    #[error("the runner violated the protocol")]
    Protocol(#[from] FrameError),
    /// The image could not be built.
    #[error("cannot build the image: {message}")]
    Build {
        /// The last message of the build.
        message: String,
    },
    /// The host's side of the workspace failed.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// A received file could not be written.
    #[error("cannot write the files of the run")]
    WriteFile(#[from] skillbox_runner::TreeWriteError),
    /// A system call of this process failed.
    #[error("cannot {action}")]
    Io {
        /// The attempted operation.
        action: &'static str,
        /// The cause.
        source: io::Error,
    },
}

impl DockerError {
    /// The stable code of this error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Unreachable { .. } | Self::Address { .. } | Self::Timeout { .. } => ErrorCode::ExecutorUnavailable,
            Self::ApiOutdated { .. } => ErrorCode::ExecutorOutdated,
            Self::ImageMissing { .. } | Self::ImageUnusable { .. } => ErrorCode::ImageMissing,
            Self::DiskFull { .. } => ErrorCode::ExecutorFull,
            Self::ContainerLost { .. } => ErrorCode::ExecutorLost,
            Self::Isolation(error) => error.code(),
            Self::InputsTooLarge { .. } => ErrorCode::LimitExceeded,
            Self::Workspace(_) | Self::WriteFile(_) => ErrorCode::Storage,
            Self::Api { .. } | Self::Build { .. } => ErrorCode::ExecutorUnavailable,
            Self::JobRefused { .. } | Self::Protocol(_) | Self::Io { .. } => ErrorCode::Internal,
        }
    }

    /// A hint for the user, if there is one.
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Unreachable { source, .. } if is_permission_denied(source) => {
                "this user may not access the daemon: add it to the group `docker`, or use `--executor local`"
            }
            Self::Unreachable { .. } | Self::Timeout { .. } => {
                "start the Docker daemon, or set its address with `--docker-host`; `--executor local` needs no daemon"
            }
            Self::Address { .. } => "write `unix:///path/to/docker.sock` or `tcp://host:port`",
            Self::ImageMissing { .. } | Self::ImageUnusable { .. } => "run `skillbox docker build-runner`",
            Self::Build { .. } => "without a network, use a base image that contains bash and python3: `--base IMAGE`",
            Self::Isolation(error) => return error.hint(),
            _ => return None,
        };
        Some(text.to_owned())
    }

    pub(super) fn io(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, source }
    }

    /// Classifies an error response of the daemon.
    pub(super) fn from_api_error(
        action: &'static str,
        host: &str,
        image: &str,
        source: bollard::errors::Error,
    ) -> Self {
        use bollard::errors::Error;
        if let Error::DockerResponseServerError { status_code, message } = &source {
            if message.contains("no space left on device") {
                return Self::DiskFull {
                    message: message.clone(),
                };
            }
            if *status_code == 404 && message.to_lowercase().contains("no such image") {
                return Self::ImageMissing {
                    image: image.to_owned(),
                };
            }
            if message.contains(crate::embedded_runner::RUNNER_PATH) && message.contains("no such file") {
                return Self::ImageUnusable {
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

fn is_permission_denied(error: &(dyn std::error::Error + 'static)) -> bool {
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
