//! How long the changes of a run to the directory of its skill stay.
//!
//! They are in the workspace, below `skills/`, where the next run of the session would find them. By default they are
//! discarded after the run, so that each run starts from the frozen skill.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use skillbox_executor::workspace::Workspace;
use skillbox_model::{Digest, ExecutorKind, Layer, SkillName};
use skillbox_sandbox::{Need, Profile};
use skillbox_trust::TrustMode;

use crate::RunError;
use crate::session::OpenSession;
use crate::settings::{RuntimeSettings, SkillDirKeep};

/// The file of a session that stores which skills its workspace has changes of.
const KEPT_CHANGES_FILE: &str = "skill_changes.json";

/// The skills with kept changes, and the digest of the skill that was changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct KeptChanges(BTreeMap<SkillName, Digest>);

/// How long the changes of a run stay: as the settings say, but never beyond the run if only approved skills may run. A
/// later run of the session would execute files that nobody approved. A profile without mounts copies the skill for
/// each run.
pub(crate) fn how_long_kept(
    settings: &RuntimeSettings,
    profile: &Profile,
    executor: ExecutorKind,
) -> Result<SkillDirKeep, RunError> {
    let may_be_kept = settings.trust.policy.mode == TrustMode::Open && profile.need(Layer::MountNamespace) != Need::Off;
    if settings.skill_dir_keep == SkillDirKeep::Run || !may_be_kept {
        return Ok(SkillDirKeep::Run);
    }
    match executor {
        ExecutorKind::Local => Ok(SkillDirKeep::Session),
        ExecutorKind::Docker => Err(RunError::ExecutorNotConfigured {
            message: "the docker executor cannot keep changes to the directory of a skill".to_owned(),
            hint: "set `skill_dir_keep` to `run`, or run with `--executor local`".to_owned(),
        }),
    }
}

/// Prepares the workspace of a session for a run of this skill: removes the changes of earlier runs, unless they are
/// kept and the skill is still the one that was changed.
pub(crate) fn prepare_changes(
    session: &OpenSession,
    workspace: &Workspace,
    keep: SkillDirKeep,
    (skill, digest): (&SkillName, Digest),
) -> Result<(), RunError> {
    if keep == SkillDirKeep::Run {
        return Ok(workspace.clear_skills()?);
    }
    let kept = session.read_file::<KeptChanges>(KEPT_CHANGES_FILE)?.unwrap_or_default();
    if kept.0.get(skill) == Some(&digest) {
        return Ok(());
    }
    workspace.clear_skill(skill)?;
    session.update_file(KEPT_CHANGES_FILE, |stored: &mut Option<KeptChanges>| {
        stored.get_or_insert_default().0.insert(skill.clone(), digest);
    })?;
    Ok(())
}
