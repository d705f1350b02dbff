//! The executors behind one face: the same job, the same answer, wherever it runs.

use std::sync::Arc;

use skillbox_model::{ErrorCode, ExecutorKind, Limits};
use skillbox_sandbox::Profile;

use crate::docker::Bring;
use crate::job::JobSpec;
use crate::workspace::Workspace;
use crate::{Cancel, DockerError, DockerExecutor, EventSink, Finished, LocalError, LocalExecutor, Placement};

/// Where a job runs.
#[derive(Clone, Debug)]
pub enum Executor {
    /// On this host, in the kernel's sandbox.
    Local(Box<LocalExecutor>),
    /// In a container.
    Docker(Arc<DockerExecutor>),
}

/// One staged job, and what is wanted of it.
pub struct Run<'a, 'e> {
    /// The job.
    pub spec: &'a JobSpec,
    /// What confines it.
    pub profile: &'a Profile,
    /// Where everything is.
    pub placement: Placement,
    /// Where it may write.
    pub workspace: &'a Workspace,
    /// What must be in the workspace afterwards, where it is not there anyway.
    pub bring: Bring<'a>,
    /// The caller's switch.
    pub cancel: &'a Cancel,
    /// Who listens.
    pub events: &'a mut EventSink<'e>,
}

impl std::fmt::Debug for Run<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("spec", &self.spec).finish_non_exhaustive()
    }
}

/// An executor's own failure.
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

    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Local(error) => error.hint(),
            Self::Docker(error) => error.hint(),
        }
    }
}

impl Executor {
    /// Which one it is.
    pub fn kind(&self) -> ExecutorKind {
        match self {
            Self::Local(_) => ExecutorKind::Local,
            Self::Docker(_) => ExecutorKind::Docker,
        }
    }

    /// An empty workspace for one run.
    pub fn create_workspace(&self, profile: &Profile, limits: &Limits) -> Result<Workspace, ExecutorError> {
        match self {
            Self::Local(local) => Ok(local.create_workspace(profile, limits)?),
            Self::Docker(docker) => Ok(docker.create_workspace()?),
        }
    }

    /// Lets a workspace go that was made for one run. Taking it down need not be part of the run's time.
    pub fn take_down(&self, workspace: Workspace, limits: &Limits) {
        match self {
            Self::Local(local) => local.take_down(workspace, limits),
            Self::Docker(_) => drop(workspace),
        }
    }

    /// Lets go of what runs have left, where their workspaces stay.
    pub fn clear_away(&self) {
        if let Self::Local(local) = self {
            local.clear_away();
        }
    }

    /// Runs a staged job until everything of it is dead.
    pub fn run(&self, run: Run<'_, '_>) -> Result<Finished, ExecutorError> {
        let Run {
            spec,
            profile,
            placement,
            workspace,
            bring,
            cancel,
            events,
        } = run;
        match self {
            Self::Local(local) => Ok(local.run(spec, profile, placement, workspace, cancel, events)?),
            Self::Docker(docker) => Ok(docker.run(spec, profile, &placement, workspace, bring, cancel, events)?),
        }
    }
}
