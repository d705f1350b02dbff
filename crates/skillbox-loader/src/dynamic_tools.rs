//! Host tools that become visible when a skill that needs them is loaded.

use std::collections::BTreeSet;

use crate::agent::AgentName;
use crate::host_tools::{DynamicTools, HostTool};
use crate::policy::ToolName;
use crate::state::SkillsState;

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

impl SkillsState {
    /// The registered host tools that the agent sees: those of each loaded skill, in loading order.
    pub fn visible_host_tools(&self, agent: &AgentName) -> Vec<&HostTool> {
        if self.host_tools.is_empty() {
            return Vec::new();
        }
        let names = self.host_tools.unlocked_by.visible(&[], self, agent);
        names
            .iter()
            .filter_map(|name| self.host_tools.definitions.get(name))
            .collect()
    }
}
