//! Disables a skill for this session, and enables it again.

use skillbox_model::SkillName;

use crate::call_context::{CallContext, OperationOutcome};
use crate::delta::{StateDelta, StateOperation};
use crate::dialect::Dialect;
use crate::loader_error::LoaderError;
use crate::sanitize::sanitize_markdown_line;
use crate::tool_interface::{SetDisabledResult, SkillInput};

impl CallContext<'_> {
    /// Disables a skill: it disappears from lists, searches and prompts, cannot be loaded, and is unloaded everywhere.
    pub fn disable(&self, input: &SkillInput) -> Result<OperationOutcome<SetDisabledResult>, LoaderError> {
        let name = self.find_name(&input.skill)?;
        let mut delta = StateDelta::default();
        let changed = !self.state.disabled().contains(name);
        if changed {
            for (agent, state) in &self.state.agents {
                if state.loaded.iter().any(|loaded| loaded.skill == *name) {
                    let (agent, skill) = (agent.clone(), name.clone());
                    delta.push(StateOperation::Unload { agent, skill });
                }
            }
            delta.push(StateOperation::Disable { skill: name.clone() });
        }
        let text = match (self.settings.dialect, changed) {
            (Dialect::Saa, true) => format!("Skill '{}' has been disabled.", sanitize_markdown_line(name.as_str())),
            (Dialect::Saa, false) => format!("Skill '{}' is already disabled.", sanitize_markdown_line(name.as_str())),
            (_, true) => format!("disabled: {}", sanitize_markdown_line(name.as_str())),
            (_, false) => format!("{} is already disabled", sanitize_markdown_line(name.as_str())),
        };
        let result = SetDisabledResult {
            skill: name.clone(),
            disabled: true,
            changed,
        };
        Ok(OperationOutcome { result, text, delta })
    }

    /// Enables a disabled skill, without loading it.
    pub fn enable(&self, input: &SkillInput) -> Result<OperationOutcome<SetDisabledResult>, LoaderError> {
        let name = self.find_name(&input.skill)?;
        let changed = self.state.disabled().contains(name);
        let (text, delta) = if changed {
            let operation = StateOperation::Enable { skill: name.clone() };
            (
                format!("enabled: {}", sanitize_markdown_line(name.as_str())),
                operation.into(),
            )
        } else {
            (
                format!("{} is not disabled", sanitize_markdown_line(name.as_str())),
                StateDelta::default(),
            )
        };
        let result = SetDisabledResult {
            skill: name.clone(),
            disabled: false,
            changed,
        };
        Ok(OperationOutcome { result, text, delta })
    }

    /// Finds the name of a skill, disabled or not.
    fn find_name(&self, name: &str) -> Result<&SkillName, LoaderError> {
        let skill = self.state.skill_in_filter(self.agent, name);
        skill.map(|skill| &skill.name).ok_or_else(|| self.unknown_skill(name))
    }
}
