//! The view of its skill that a script may change.

use skillbox_sandbox::{SkillDirAccess, WritableSkill};

use crate::StagedJob;
use crate::layout;
use crate::workspace::Workspace;

impl StagedJob {
    /// The skill that the script may change, if it may change one. Skills that are mounted beside it stay read-only.
    pub(super) fn writable_skill(&self) -> Option<WritableSkill> {
        let (name, _) = self.skills.first().filter(|_| self.skill_dir == SkillDirAccess::Cow)?;
        WritableSkill::new(&format!("{}/{}", layout::ROOT, layout::SKILLS), name.as_str())
    }

    /// Prepares the workspace for changes to the skill. If that fails, the skill stays read-only, and the reason is
    /// returned.
    pub(super) fn create_skill_layers(self, workspace: &Workspace) -> (Self, Option<String>) {
        if self.skill_dir == SkillDirAccess::ReadOnly || self.skills.is_empty() {
            return (self, None);
        }
        let reason = match self.writable_skill() {
            None => Some(format!(
                "a skill with the name {} cannot be writable",
                WritableSkill::WORK_DIRECTORY
            )),
            Some(skill) => {
                let created = workspace.create_skill_layers(&skill);
                created.err().map(|error| skillbox_model::with_causes(&error))
            }
        };
        let skill_dir = if reason.is_some() {
            SkillDirAccess::ReadOnly
        } else {
            self.skill_dir
        };
        (Self { skill_dir, ..self }, reason)
    }
}
