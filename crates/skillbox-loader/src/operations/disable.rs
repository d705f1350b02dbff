//! Does without a skill for this session, and takes it back.

use skillbox_model::SkillName;

use crate::delta::{StateDelta, StateOperation};
use crate::dialect::Dialect;
use crate::engine::{Answer, Engine};
use crate::loader_error::LoaderError;
use crate::one_line::one_line;
use crate::tools::{DisableResult, SkillInput};

impl Engine<'_> {
    /// Hides a skill from lists, searches, loading and prompts; what agents have loaded of it goes too.
    pub fn disable(&self, input: &SkillInput) -> Result<Answer<DisableResult>, LoaderError> {
        let name = self.known_name(&input.skill)?;
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
            (Dialect::Saa, true) => format!("Skill '{}' has been disabled.", one_line(name.as_str())),
            (Dialect::Saa, false) => format!("Skill '{}' is already disabled.", one_line(name.as_str())),
            (_, true) => format!("disabled: {}", one_line(name.as_str())),
            (_, false) => format!("{} is already disabled", one_line(name.as_str())),
        };
        let result = DisableResult {
            skill: name.clone(),
            disabled: true,
            changed,
        };
        Ok(Answer { result, text, delta })
    }

    /// Takes a disabled skill back; it is not loaded.
    pub fn enable(&self, input: &SkillInput) -> Result<Answer<DisableResult>, LoaderError> {
        let name = self.known_name(&input.skill)?;
        let changed = self.state.disabled().contains(name);
        let (text, delta) = if changed {
            let operation = StateOperation::Enable { skill: name.clone() };
            (format!("enabled: {}", one_line(name.as_str())), operation.into())
        } else {
            (
                format!("{} is not disabled", one_line(name.as_str())),
                StateDelta::default(),
            )
        };
        let result = DisableResult {
            skill: name.clone(),
            disabled: false,
            changed,
        };
        Ok(Answer { result, text, delta })
    }

    fn known_name(&self, name: &str) -> Result<&SkillName, LoaderError> {
        let skill = self.state.known_skill(self.agent, name);
        skill.map(|skill| &skill.name).ok_or_else(|| self.unknown_skill(name))
    }
}
