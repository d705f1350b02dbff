//! Checks whether a skill may run, before the executor is asked.

use std::sync::Arc;

use crate::call_context::CallContext;
use crate::loader_error::LoaderError;
use crate::skill_view::SkillView;

impl<'c> CallContext<'c> {
    /// Returns the skill if it may run: it exists and is enabled, the caller may invoke it, and it is loaded if the
    /// host requires that.
    pub fn check_run(&self, name: &str) -> Result<&'c Arc<SkillView>, LoaderError> {
        let skill = self.find_skill(name)?;
        let is_loaded = self.state.is_loaded(self.agent, &skill.name);
        if self.settings.require_loaded && !is_loaded {
            return Err(LoaderError::NotLoaded(name.to_owned()));
        }
        if !is_loaded {
            self.check_caller(skill)?;
        }
        Ok(skill)
    }
}
