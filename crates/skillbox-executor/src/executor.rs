//! One interface for all executors: the same job gives the same result wherever it runs.

use std::sync::Arc;

use skillbox_model::{ErrorCode, ExecutorKind, Limits};
use skillbox_sandbox::Profile;

use crate::docker::FilesToFetch;
use crate::job::JobSpec;
use crate::workspace::Workspace;
use crate::{
    CancelToken, DockerError, DockerExecutor, EventSink, ExecutionResult, LocalError, LocalExecutor, StagedJob,
};

/// Runs jobs, either on this host or in containers.
#[derive(Clone, Debug)]
pub enum Executor {
    /// On this host, in the kernel's sandbox.
    Local(Box<LocalExecutor>),
    /// In a container.
    Docker(Arc<DockerExecutor>),
}

/// The arguments of [`Executor::run`].
pub struct RunParams<'a, 'e> {
    /// The parsed request.
    pub spec: &'a JobSpec,
    /// The profile that confines the command.
    pub profile: &'a Profile,
    /// The staged job.
    pub job: StagedJob,
    /// The workspace that the command may write to.
    pub workspace: &'a Workspace,
    /// The files that the executor copies into the workspace after the run, if the command ran in a container.
    pub files_to_fetch: FilesToFetch<'a>,
    /// Cancels the run.
    pub cancel: &'a CancelToken,
    /// Receives the events.
    pub events: &'a mut EventSink<'e>,
}

impl std::fmt::Debug for RunParams<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunParams")
            .field("spec", &self.spec)
            .finish_non_exhaustive()
    }
}

/// A failure of an executor itself.
#[derive(Debug, thiserror::Error)]
pub enum ExecutorError {
    /// On this host.
    #[error(transparent)]
    Local(#[from] LocalError),
    /// In a container.
    #[error(transparent)]
    Docker(#[from] DockerError),
}

impl ExecutorError {
    /// The stable code of this error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Local(error) => error.code(),
            Self::Docker(error) => error.code(),
        }
    }

    /// A hint for the user, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Local(error) => error.hint(),
            Self::Docker(error) => error.hint(),
        }
    }
}

impl Executor {
    /// The kind of this executor.
    pub fn kind(&self) -> ExecutorKind {
        match self {
            Self::Local(_) => ExecutorKind::Local,
            Self::Docker(_) => ExecutorKind::Docker,
        }
    }

    /// Creates an empty workspace for one run.
    pub fn create_workspace(&self, profile: &Profile, limits: &Limits) -> Result<Workspace, ExecutorError> {
        match self {
            Self::Local(local) => Ok(local.create_workspace(profile, limits)?),
            Self::Docker(docker) => Ok(docker.create_workspace()?),
        }
    }

    /// Discards a workspace that was created for one run. In a server the removal happens after the response.
    pub fn discard_workspace(&self, workspace: Workspace, limits: &Limits) {
        match self {
            Self::Local(local) => local.discard_workspace(workspace, limits),
            Self::Docker(_) => drop(workspace),
        }
    }

    /// Releases the sandboxes of finished runs whose workspaces are kept.
    pub fn release_finished_sandboxes(&self) {
        if let Self::Local(local) = self {
            local.release_finished_sandboxes();
        }
    }

    /// Runs a staged job until no process of it is left.
    pub fn run(&self, params: RunParams<'_, '_>) -> Result<ExecutionResult, ExecutorError> {
        let RunParams {
            spec,
            profile,
            job,
            workspace,
            files_to_fetch,
            cancel,
            events,
        } = params;
        match self {
            Self::Local(local) => Ok(local.run(spec, profile, job, workspace, cancel, events)?),
            Self::Docker(docker) => Ok(docker.run(spec, profile, &job, workspace, files_to_fetch, cancel, events)?),
        }
    }
}
