//! Why a job could not be run on this host. A failing script is not among the reasons.

use std::io;

use skillbox_model::ErrorCode;
use skillbox_sandbox::{LaunchError, PlanError, SpawnerError};

use crate::workspace::WorkspaceError;

/// Our own failure, never the script's.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// The run is refused before anything is done.
    #[error(transparent)]
    Plan(PlanError),
    /// A step of the plan failed.
    #[error("the sandbox could not be set up")]
    Launch(#[source] LaunchError),
    /// This host does not even let the workspace be mounted.
    #[error("this host cannot give the isolation that the profile asks for")]
    Isolation(#[source] SpawnerError),
    /// The spawner does not answer.
    #[error("the sandbox's spawner failed")]
    Spawner(#[source] SpawnerError),
    /// No descriptor for the script's streams or its workspace.
    #[error("cannot open a descriptor for the run")]
    Pipe(#[source] io::Error),
    /// The workspace could not be filled.
    #[error(transparent)]
    Workspace(WorkspaceError),
    /// The sandbox could not be watched to its end.
    #[error("cannot watch the sandbox")]
    Watch(#[source] io::Error),
}

impl LocalError {
    /// The stable code of this error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Plan(error) => error.code(),
            Self::Launch(error) => error.code(),
            Self::Isolation(_) => ErrorCode::IsolationUnavailable,
            Self::Spawner(_) => ErrorCode::ExecutorUnavailable,
            Self::Workspace(_) => ErrorCode::Storage,
            Self::Pipe(_) | Self::Watch(_) => ErrorCode::Internal,
        }
    }

    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Plan(error) => error.hint(),
            _ => None,
        }
    }
}
