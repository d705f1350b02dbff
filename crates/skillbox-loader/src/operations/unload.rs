//! Unloads a skill.

use crate::call_context::{CallContext, OperationOutcome};
use crate::delta::{StateDelta, StateOperation};
use crate::loader_error::LoaderError;
use crate::sanitize::sanitize_markdown_line;
use crate::tool_interface::{SkillInput, UnloadResult};

impl CallContext<'_> {
    /// Unloads a skill and its documents. A skill that is not loaded stays as it is.
    pub fn unload(&self, input: &SkillInput) -> Result<OperationOutcome<UnloadResult>, LoaderError> {
        let skill = self.find_skill(&input.skill)?;
        let name = skill.name.clone();
        let was_loaded = self.state.is_loaded(self.agent, &name);
        let loaded = self.state.loaded(self.agent).map(|loaded| &loaded.skill);
        let loaded = loaded.filter(|loaded| **loaded != name).cloned().collect();
        let shown = sanitize_markdown_line(name.as_str());
        let (text, delta) = if was_loaded {
            let agent = self.agent.clone();
            let skill = name.clone();
            (
                format!("unloaded: {shown}"),
                StateOperation::Unload { agent, skill }.into(),
            )
        } else {
            (format!("{shown} is not loaded"), StateDelta::default())
        };
        let result = UnloadResult {
            skill: name.clone(),
            was_loaded,
            loaded,
        };
        Ok(OperationOutcome { result, text, delta })
    }
}
