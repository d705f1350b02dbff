//! The input that every dialect renders into a prompt section.

use super::loaded_skill::LoadedBody;
use crate::agent::AgentName;
use crate::settings::Settings;
use crate::state::SkillsState;

/// Everything that a prompt section depends on. The same input gives the same bytes.
pub(crate) struct PromptInput<'p> {
    pub(crate) settings: &'p Settings,
    pub(crate) state: &'p SkillsState,
    pub(crate) agent: &'p AgentName,
    /// The texts of loaded skills, as far as the prompt contains them.
    pub(crate) bodies: &'p [LoadedBody],
    /// Skills that could not be loaded, for dialects that report them.
    pub(crate) warnings: &'p [String],
}

impl PromptInput<'_> {
    pub(crate) fn log_budget_exceeded(&self, excluded: usize) {
        let budget = self.settings.description_budget;
        tracing::warn!(
            excluded,
            budget,
            "description budget exceeded, {excluded} skills excluded"
        );
    }
}
