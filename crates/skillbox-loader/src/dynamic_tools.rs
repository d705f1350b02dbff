//! Host tools that become visible when a skill that needs them is loaded.

use std::collections::{BTreeMap, BTreeSet};

use skillbox_model::SkillName;

use crate::agent::AgentName;
use crate::policy::ToolName;
use crate::state::SkillsState;

/// Names of host tools that stay hidden until a skill is loaded.
#[derive(Clone, Debug, Default)]
pub struct DynamicTools {
    /// Tools that belong to a skill.
    pub by_skill: BTreeMap<SkillName, Vec<String>>,
    /// Tools that a skill can unlock by naming them in its `allowed-tools`.
    pub unlockable: BTreeSet<String>,
}

impl DynamicTools {
    /// The tools that the agent sees: the given ones, then those of each loaded skill, without duplicates.
    ///
    /// The state decides, not the conversation: only a successful load counts, and trimming the history hides
    /// nothing.
    pub fn visible(&self, always: &[String], state: &SkillsState, agent: &AgentName) -> Vec<String> {
        let mut visible: Vec<String> = Vec::new();
        let mut seen = BTreeSet::new();
        let mut show = |tool: &str| {
            if seen.insert(tool.to_owned()) {
                visible.push(tool.to_owned());
            }
        };
        always.iter().for_each(|tool| show(tool));
        for (loaded, skill) in state.loaded_views(agent) {
            self.by_skill
                .get(&loaded.skill)
                .into_iter()
                .flatten()
                .for_each(|tool| show(tool));
            for entry in skill.declared_tools().entries {
                self.unlockable
                    .iter()
                    .filter(|tool| entry.matches_tool(&ToolName::new(tool)))
                    .for_each(|tool| show(tool));
            }
        }
        visible
    }
}
