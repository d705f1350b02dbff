//! Tools that become visible with the skills that need them.

use std::collections::{BTreeMap, BTreeSet};

use skillbox_model::SkillName;

use crate::agent::AgentName;
use crate::policy::ToolName;
use crate::state::SkillsState;

/// The host's own tools that it keeps back until a skill is loaded, by name.
#[derive(Clone, Debug, Default)]
pub struct DynamicTools {
    /// Tools that belong to a skill.
    pub grouped: BTreeMap<SkillName, Vec<String>>,
    /// Tools that a skill may name in its `allowed-tools`.
    pub known: BTreeSet<String>,
}

impl DynamicTools {
    /// The tools that the agent sees: the given ones, then those of each loaded skill, each once.
    ///
    /// It is told from the state, not from the conversation: only a load that succeeded counts, and trimming
    /// the history takes nothing away.
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
            self.grouped
                .get(&loaded.skill)
                .into_iter()
                .flatten()
                .for_each(|tool| show(tool));
            for entry in skill.grant().entries {
                self.known
                    .iter()
                    .filter(|tool| entry.names(&ToolName::new(tool)))
                    .for_each(|tool| show(tool));
            }
        }
        visible
    }
}
