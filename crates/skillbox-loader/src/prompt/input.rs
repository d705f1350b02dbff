//! The input that every dialect renders into a prompt section.

use super::loaded_skill::LoadedSkillText;
use crate::agent::AgentName;
use crate::settings::Settings;
use crate::state::SkillsState;

/// Everything that a prompt section depends on. The same input gives the same bytes.
pub(crate) struct PromptInput<'p> {
    pub(crate) settings: &'p Settings,
    pub(crate) state: &'p SkillsState,
    pub(crate) agent: &'p AgentName,
    /// The texts of the loaded skills; empty if the prompt does not contain them.
    pub(crate) loaded_texts: &'p [LoadedSkillText],
    /// Skills that could not be loaded, for dialects that report them.
    pub(crate) warnings: &'p [String],
}

impl PromptInput<'_> {
    pub(crate) fn log_budget_exceeded(&self, excluded: usize) {
        let budget = self.settings.max_list_chars;
        tracing::warn!(
            excluded,
            budget,
            "Description budget exceeded, {excluded} skills excluded"
        );
    }
}
