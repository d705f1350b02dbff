//! Why a job could not run on this host. A failing script is not an error.

use std::io;

use skillbox_egress::EgressError;
use skillbox_model::ErrorCode;
use skillbox_sandbox::{LaunchError, PlanError, SpawnerError};

use crate::workspace::WorkspaceError;

/// A failure of the local executor.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// Planning refused the run before anything was started.
    #[error(transparent)]
    Plan(PlanError),
    /// A step of the plan failed.
    #[error("cannot set up the sandbox")]
    Launch(#[source] LaunchError),
    /// This host does not allow mounting a workspace.
    #[error("this host cannot provide the isolation that the profile requires")]
    Isolation(#[source] SpawnerError),
    /// The spawner does not answer.
    #[error("the sandbox's spawner failed")]
    Spawner(#[source] SpawnerError),
    /// A descriptor for the script's streams or its workspace could not be opened.
    #[error("cannot open a descriptor for the run")]
    Descriptor(#[source] io::Error),
    /// A file could not be placed in the workspace.
    #[error(transparent)]
    Workspace(WorkspaceError),
    /// The connections of the run cannot be carried.
    #[error("cannot start the network of the run")]
    Network(#[source] EgressError),
    /// The certificate authorities of the run cannot be written.
    #[error("cannot write the certificate authorities of the run")]
    Certificates(#[source] io::Error),
    /// The sandbox did not pass its listening sockets.
    #[error("the sandbox did not pass the sockets of its network")]
    NoListeningSockets,
    /// Waiting for the end of the sandbox failed.
    #[error("cannot supervise the sandbox")]
    Supervise(#[source] io::Error),
}

impl LocalError {
    /// The stable code of this error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Plan(error) => error.code(),
            Self::Launch(error) => error.code(),
            Self::Isolation(_) => ErrorCode::IsolationUnavailable,
            Self::Spawner(_) => ErrorCode::ExecutorUnavailable,
            Self::Workspace(_) | Self::Certificates(_) => ErrorCode::Storage,
            Self::Descriptor(_) | Self::Supervise(_) | Self::Network(_) | Self::NoListeningSockets => {
                ErrorCode::Internal
            }
        }
    }

    /// A hint for the user, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Plan(error) => error.hint(),
            _ => None,
        }
    }
}
