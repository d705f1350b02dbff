//! Opens the workspace of a run, with the limits that apply in it.

use std::sync::Arc;

use skillbox_executor::job::{CollectionSpec, JobSpec, RequestError};
use skillbox_executor::snapshot::Snapshot;
use skillbox_executor::workspace::{Backing, Baseline, BaselineContent, OriginalSkill, Workspace};
use skillbox_model::{ByteSize, Digest, ErrorCode, ExecutorKind, Layer, Limits, SkillName};
use skillbox_sandbox::{Need, SkillDirAccess, WorkspaceBacking};
use tracing::info_span;

use super::accept::RunSetup;
use crate::run_workspace::RunWorkspace;
use crate::session::{NewWorkspace, ScratchSession};
use crate::skill_changes::prepare_changes;
use crate::{RunError, Runtime};

impl RunSetup<'_> {
    /// Whether a run without a session needs a workspace on the host's disk.
    fn needs_scratch_workspace(&self) -> bool {
        self.executor.kind() == ExecutorKind::Local && self.profile.workspace.backing == WorkspaceBacking::Disk
    }

    /// What the workspace of a new session may be. A script without mounts of its own sees the paths of the host.
    fn new_workspace<'a>(&self, limits: &'a Limits) -> NewWorkspace<'a> {
        if self.has_own_mounts() {
            NewWorkspace::Limited(limits)
        } else {
            NewWorkspace::Directory
        }
    }

    /// Refuses a workspace that the profile cannot use.
    fn check_workspace(&self, workspace: &Workspace) -> Result<(), RequestError> {
        if self.has_own_mounts() || !matches!(workspace.backing(), Backing::Image { .. }) {
            return Ok(());
        }
        let message = "the workspace of this session is a file system of its own, which a profile without a mount \
                       namespace cannot reach";
        Err(
            RequestError::new("profile", ErrorCode::InvalidRequest, message.to_owned())
                .with_hint("use another session, or a profile with a mount namespace"),
        )
    }

    fn has_own_mounts(&self) -> bool {
        self.executor.kind() == ExecutorKind::Docker || self.profile.need(Layer::MountNamespace) != Need::Off
    }
}

impl Runtime {
    /// Opens the workspace of the run, and returns it with the limits that apply in it.
    pub(super) fn open_workspace(
        &self,
        spec: &JobSpec,
        setup: &RunSetup<'_>,
        skill: (&SkillName, Digest),
    ) -> Result<(RunWorkspace, Limits), RunError> {
        let _span = info_span!("workspace.create").entered();
        let limits = spec.limits.clone();
        let (run_workspace, limits) = match &setup.session {
            Some(locked) => {
                let workspace = locked.session.workspace(setup.new_workspace(&limits))?;
                setup.check_workspace(&workspace)?;
                prepare_changes(&locked.session, &workspace, setup.skill_dir_keep, skill)?;
                let limits = lower_file_limit_to_quota(limits, &workspace);
                (RunWorkspace::Session(workspace), limits)
            }
            None if setup.needs_scratch_workspace() => {
                let session = ScratchSession::create(&self.scratch_sessions, &spec.run_id)?;
                let scratch = RunWorkspace::Scratch {
                    workspace: session.session.workspace(setup.new_workspace(&limits))?,
                    _session: session,
                };
                (scratch, limits)
            }
            None => {
                let workspace = setup.executor.create_workspace(setup.profile, &limits)?;
                (RunWorkspace::Temporary(workspace), limits)
            }
        };
        run_workspace.workspace().prepare(&spec.run_id)?;
        Ok((run_workspace, limits))
    }
}

/// Lowers the file size limit to the bytes that the workspace has left of its quota. In a full workspace, the script can
/// only remove or shrink files.
fn lower_file_limit_to_quota(limits: Limits, workspace: &Workspace) -> Limits {
    let used = workspace.used_bytes(limits.workspace_inodes);
    let free = ByteSize(limits.workspace.bytes().saturating_sub(used));
    Limits {
        file: limits.file.min(free),
        ..limits
    }
}

/// Records which files the run finds: those of a session's workspace (other workspaces are empty), and those of the skill
/// if the run may change them.
pub(super) fn record_baseline(
    setup: &RunSetup<'_>,
    workspace: &Workspace,
    collection: &CollectionSpec,
    (name, snapshot): &(SkillName, Arc<Snapshot>),
) -> Result<Baseline, RunError> {
    let baseline = record_workspace(setup, workspace, collection)?;
    match setup.skill_dir {
        SkillDirAccess::Cow => {
            let original = OriginalSkill::new(name, snapshot.root()).map_err(RunError::Collect)?;
            Ok(baseline.with_skill(original))
        }
        SkillDirAccess::ReadOnly => Ok(baseline),
    }
}

fn record_workspace(
    setup: &RunSetup<'_>,
    workspace: &Workspace,
    collection: &CollectionSpec,
) -> Result<Baseline, RunError> {
    if setup.session.is_none() {
        return Ok(Baseline::default());
    }
    let content = match setup.executor.kind() {
        ExecutorKind::Local => BaselineContent::Identity,
        // All files of the workspace are written again after the run.
        ExecutorKind::Docker => BaselineContent::Digest,
    };
    Baseline::record(workspace, &collection.globs, content).map_err(RunError::Collect)
}
