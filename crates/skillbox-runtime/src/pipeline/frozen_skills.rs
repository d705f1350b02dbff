//! The frozen skills of a run.

use std::sync::Arc;

use skillbox_executor::CancelToken;
use skillbox_executor::job::JobSpec;
use skillbox_executor::snapshot::Snapshot;
use skillbox_model::SkillName;
use skillbox_repository::Catalog;
use tracing::info_span;

use crate::{RunError, Runtime};

/// The frozen skills of a run.
pub(super) struct FrozenSkills {
    /// The skill that runs.
    pub(super) main: (SkillName, Arc<Snapshot>),
    /// The skills mounted beside it.
    pub(super) others: Vec<(SkillName, Arc<Snapshot>)>,
}

impl FrozenSkills {
    pub(super) fn names(&self) -> Vec<&SkillName> {
        std::iter::once(&self.main)
            .chain(&self.others)
            .map(|(name, _)| name)
            .collect()
    }

    /// All skills, the one that runs first.
    pub(super) fn into_list(self) -> Vec<(SkillName, Arc<Snapshot>)> {
        std::iter::once(self.main).chain(self.others).collect()
    }
}

impl Runtime {
    pub(super) fn freeze_skills(
        &self,
        spec: &JobSpec,
        catalog: &Catalog,
        cancel: &CancelToken,
    ) -> Result<FrozenSkills, RunError> {
        let _span = info_span!("workspace.stage.skill", skill = %spec.skill).entered();
        let freeze = |name: &SkillName, field: &str| -> Result<_, RunError> {
            Ok((name.clone(), self.freeze(catalog, name.as_str(), field, cancel)?))
        };
        let others = spec.with_skills.iter().enumerate();
        Ok(FrozenSkills {
            main: freeze(&spec.skill, "skill")?,
            others: others
                .map(|(index, name)| freeze(name, &format!("with_skills[{index}]")))
                .collect::<Result<_, _>>()?,
        })
    }
}
