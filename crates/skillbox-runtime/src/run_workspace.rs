//! The workspace of one run, and its release after the run.

use skillbox_executor::Executor;
use skillbox_executor::workspace::Workspace;
use skillbox_model::{Limits, with_causes};
use tracing::info_span;

use crate::session::ScratchSession;

/// The workspace of one run, by its lifetime.
pub(crate) enum RunWorkspace {
    /// Belongs to a session and stays.
    Session(Workspace),
    /// A directory on disk that is removed when the scratch session is dropped.
    Scratch {
        workspace: Workspace,
        _session: ScratchSession,
    },
    /// Created by the executor for this run alone.
    Temporary(Workspace),
}

impl RunWorkspace {
    /// The workspace itself.
    pub fn workspace(&self) -> &Workspace {
        match self {
            Self::Session(workspace) | Self::Scratch { workspace, .. } | Self::Temporary(workspace) => workspace,
        }
    }

    /// Discards what the run changed in the directory of its skill, if the workspace outlives the run. The next run
    /// starts from the frozen skill.
    pub fn discard_skill_changes(&self) {
        if let Self::Session(workspace) = self
            && let Err(error) = workspace.clear_skills()
        {
            // The next run clears them before it starts, or does not start.
            tracing::warn!(
                error = with_causes(&error),
                "cannot discard the changes of a run to its skill"
            );
        }
    }

    /// Ends the use of the workspace. A scratch directory is removed at once; a temporary workspace is left for the clean-up.
    pub fn into_cleanup<'r>(self, executor: &'r Executor, limits: &Limits) -> Cleanup<'r> {
        Cleanup {
            executor,
            temporary: match self {
                Self::Temporary(workspace) => Some((workspace, limits.clone())),
                Self::Session(_) | Self::Scratch { .. } => None,
            },
        }
    }
}

/// The pending clean-up after a run: its temporary workspace, and the sandbox that the executor has not released yet.
///
/// Dropping it does the clean-up. The caller of a run need not wait for that: send the result first, then drop this.
#[derive(Debug)]
pub struct Cleanup<'r> {
    executor: &'r Executor,
    temporary: Option<(Workspace, Limits)>,
}

impl Drop for Cleanup<'_> {
    fn drop(&mut self) {
        let _span = info_span!("workspace.cleanup").entered();
        match self.temporary.take() {
            Some((workspace, limits)) => self.executor.discard_workspace(workspace, &limits),
            None => self.executor.release_finished_sandboxes(),
        }
    }
}
