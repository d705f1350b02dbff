//! Starts a turn: updates the state with changes on disk, and unloads skills that were loaded for one turn only.

use std::collections::BTreeSet;

use serde_json::json;
use skillbox_model::SkillName;
use skillbox_repository::Catalog;

use crate::agent::{AgentName, AgentSpec, Inheritance};
use crate::call_context::CallContext;
use crate::catalog_snapshot::CatalogSnapshot;
use crate::delta::{StateDelta, StateOperation};
use crate::fire_hooks::{FiredHooks, HookTrigger, fire_event, fire_hooks};
use crate::hooks::{HookEvent, MatchedHook};
use crate::operations::scan_resources;
use crate::state::{LoadMode, SkillsState};

/// The effects of starting a turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnStartEffects {
    /// The change of the state.
    pub delta: StateDelta,
    /// Hooks that fired, for the host to run.
    pub hooks: Vec<MatchedHook>,
}

/// Computes the operation that brings the skills in the state up to date with a newer snapshot, if they differ.
pub fn compute_skills_update(state: &SkillsState, newer: &CatalogSnapshot) -> Option<StateOperation> {
    let Some(current) = state.snapshot() else {
        let changed = newer.skills().to_vec();
        let (skills, sources) = (changed.len(), newer.source_count());
        tracing::info!(skills, sources, "Discovered {skills} skills from {sources} sources");
        return Some(StateOperation::UpdateSkills {
            changed,
            removed: Vec::new(),
        });
    };
    let diff = current.diff(newer);
    (!diff.is_empty()).then(|| diff.into())
}

impl CallContext<'_> {
    /// Computes what the start of an agent's turn changes. A second start directly after the first changes nothing.
    ///
    /// A sub-agent starts within its parent's turn. It uses the skills that the state already contains, so that the
    /// parent's prompt does not change.
    pub(crate) fn compute_turn_start(&self, spec: &AgentSpec, newer: &CatalogSnapshot) -> TurnStartEffects {
        let mut delta = StateDelta::default();
        if spec.parent.is_none() || self.state.snapshot().is_none() {
            delta.operations.extend(compute_skills_update(self.state, newer));
        }
        let agent_state = self.state.agents.get(&spec.agent);
        let is_new = agent_state.is_none();
        let filter = agent_state.map(|agent| agent.filter.clone()).unwrap_or_default();
        if filter != spec.filter || is_new && spec.parent.is_some() {
            delta.push(StateOperation::SetFilter {
                agent: spec.agent.clone(),
                filter: spec.filter.clone(),
            });
        }
        if is_new && let Some((parent, Inheritance::Inherit)) = &spec.parent {
            self.inherit_loaded_skills(spec, parent, &mut delta);
        }
        for expired in self.skills_of_last_turn(&spec.agent) {
            delta.push(StateOperation::Unload {
                agent: spec.agent.clone(),
                skill: expired.clone(),
            });
        }
        // The remaining steps need the state with the delta applied.
        let mut next = self.state.clone();
        next.apply(&delta);
        let next = CallContext {
            state: &next,
            agent: &spec.agent,
            ..*self
        };
        if spec.parent.is_none() {
            next.rescan_resources(self.catalog, &mut delta);
        }
        let mut hooks = next.fire_start_hooks(&mut delta);
        if is_new && let Some((parent, _)) = &spec.parent {
            let fired = self.fire_subagent_start(spec, parent);
            delta.operations.extend(fired.delta.operations);
            hooks.extend(fired.hooks);
        }
        TurnStartEffects { delta, hooks }
    }

    /// The skills that were loaded for the last turn only. If that is how skills are loaded, the documents that were
    /// selected of skills which are not loaded belong to that turn too.
    fn skills_of_last_turn(&self, agent: &AgentName) -> BTreeSet<&SkillName> {
        let loaded = self.state.loaded(agent);
        let mut expired: BTreeSet<&SkillName> = loaded
            .filter(|loaded| loaded.mode == LoadMode::Turn)
            .map(|loaded| &loaded.skill)
            .collect();
        if self.settings.load_mode() == LoadMode::Turn {
            let selected = self
                .state
                .agents
                .get(agent)
                .into_iter()
                .flat_map(|agent| agent.docs.keys());
            expired.extend(selected.filter(|skill| !self.state.is_loaded(agent, skill)));
        }
        expired
    }

    /// Loads for a new sub-agent the skills and documents that its parent has loaded.
    fn inherit_loaded_skills(&self, spec: &AgentSpec, parent: &AgentName, delta: &mut StateDelta) {
        let loaded_by_parent = self.state.loaded(parent);
        for loaded in loaded_by_parent.filter(|loaded| spec.filter.includes(&loaded.skill)) {
            delta.push(StateOperation::Load {
                agent: spec.agent.clone(),
                skill: loaded.skill.clone(),
                mode: loaded.mode,
                arguments: loaded.arguments.clone(),
            });
            if let Some(docs) = self.state.docs(parent, &loaded.skill) {
                delta.push(StateOperation::SelectDocs {
                    agent: spec.agent.clone(),
                    skill: loaded.skill.clone(),
                    docs: docs.clone(),
                });
            }
        }
    }

    /// Prompts list the resources of loaded skills, so every turn scans them again.
    fn rescan_resources(&self, catalog: &Catalog, delta: &mut StateDelta) {
        for (loaded, skill) in self.state.loaded_views(self.agent) {
            let dir = catalog.get(loaded.skill.as_str()).map(|entry| entry.open());
            let Some(Ok(dir)) = dir else { continue };
            let (resources, _) = scan_resources(skill, &dir);
            if self.state.resources(&loaded.skill) != Some(&resources) {
                delta.push(StateOperation::SetResources {
                    skill: loaded.skill.clone(),
                    resources,
                });
            }
        }
    }

    /// Fires the hooks of the parent's skills for the start of a sub-agent.
    fn fire_subagent_start(&self, spec: &AgentSpec, parent: &AgentName) -> FiredHooks {
        let skills: Vec<_> = self.state.loaded_views(parent).map(|(_, skill)| skill).collect();
        let input = json!({"agent_type": spec.agent});
        fire_event(self.state, parent, &skills, HookEvent::SubagentStart, &input)
    }

    /// Fires the start hooks of skills that were inherited or restored from a stored state.
    fn fire_start_hooks(&self, delta: &mut StateDelta) -> Vec<MatchedHook> {
        let mut fired = Vec::new();
        for (_, skill) in self.state.loaded_views(self.agent) {
            let trigger = HookTrigger::session_start();
            fired.extend(fire_hooks(self.state, self.agent, skill, trigger, delta));
        }
        fired
    }
}
