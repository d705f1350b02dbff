//! Whether a skill may run: the gate before the executor.

use std::sync::Arc;

use crate::engine::{Caller, Engine};
use crate::loader_error::LoaderError;
use crate::skill_view::SkillView;

impl<'e> Engine<'e> {
    /// The skill, if a run of it may start: it is there and enabled, a model may invoke it, and it is loaded
    /// where the host wants that.
    pub fn may_run(&self, name: &str) -> Result<&'e Arc<SkillView>, LoaderError> {
        let skill = self.skill(name)?;
        let loaded = self.state.is_loaded(self.agent, &skill.name);
        if self.settings.require_loaded && !loaded {
            return Err(LoaderError::NotLoaded(name.to_owned()));
        }
        if skill.is_manual_only() && self.caller == Caller::Model && !loaded {
            return Err(LoaderError::ManualOnly(name.to_owned()));
        }
        Ok(skill)
    }
}
