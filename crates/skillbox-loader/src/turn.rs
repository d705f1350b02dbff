//! The start of a turn: what happened on disk comes in, what was loaded for the last turn goes.

use skillbox_repository::Catalog;

use crate::agent::{AgentStart, Inheritance};
use crate::delta::{StateDelta, StateOperation};
use crate::engine::Engine;
use crate::operations::scan_resources;
use crate::snapshot::Snapshot;
use crate::state::{LoadMode, SkillsState};
use crate::steering::{FiredHook, Moment, fire};

/// What the start of a turn brings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnStart {
    /// What changes.
    pub delta: StateDelta,
    /// Hooks whose moment has come, for the host to carry out.
    pub hooks: Vec<FiredHook>,
}

/// What leads from the skills that the state knows to those of a newer snapshot.
pub fn refresh(state: &SkillsState, newer: &Snapshot) -> Option<StateOperation> {
    let Some(known) = state.snapshot() else {
        let seen = newer.skills().to_vec();
        tracing::info!(skills = seen.len(), "discovered {} skills", seen.len());
        return Some(StateOperation::Skills { seen, gone: Vec::new() });
    };
    let change = known.change_to(newer);
    (!change.is_empty()).then(|| change.into())
}

impl Engine<'_> {
    /// What the start of an agent's turn changes. A second start with nothing in between changes nothing.
    ///
    /// An agent that another one starts does so within a turn: it takes the skills as they are known, so that
    /// its parent's prompt stays as it is.
    pub(crate) fn turn_start(&self, start: &AgentStart, newer: &Snapshot) -> TurnStart {
        let mut delta = StateDelta::default();
        if start.parent.is_none() || self.state.snapshot().is_none() {
            delta.operations.extend(refresh(self.state, newer));
        }
        let is_new = !self.state.agents.contains_key(&start.agent);
        let filter = self
            .state
            .agents
            .get(&start.agent)
            .map(|agent| agent.filter.clone())
            .unwrap_or_default();
        if filter != start.filter || is_new && start.parent.is_some() {
            delta.push(StateOperation::Agent {
                agent: start.agent.clone(),
                filter: start.filter.clone(),
            });
        }
        if is_new && let Some((parent, Inheritance::Inherit)) = &start.parent {
            for loaded in self
                .state
                .loaded(parent)
                .filter(|loaded| start.filter.shows(&loaded.skill))
            {
                delta.push(StateOperation::Load {
                    agent: start.agent.clone(),
                    skill: loaded.skill.clone(),
                    mode: loaded.mode,
                    arguments: loaded.arguments.clone(),
                });
                delta
                    .operations
                    .extend(
                        self.state
                            .docs(parent, &loaded.skill)
                            .map(|docs| StateOperation::SelectDocs {
                                agent: start.agent.clone(),
                                skill: loaded.skill.clone(),
                                docs: docs.clone(),
                            }),
                    );
            }
        }
        for loaded in self
            .state
            .loaded(&start.agent)
            .filter(|loaded| loaded.mode == LoadMode::Turn)
        {
            delta.push(StateOperation::Unload {
                agent: start.agent.clone(),
                skill: loaded.skill.clone(),
            });
        }
        // What follows is about the state as it will be.
        let mut next = self.state.clone();
        next.apply(&delta);
        let next = Engine {
            state: &next,
            agent: &start.agent,
            ..*self
        };
        if start.parent.is_none() {
            next.look_for_resources(self.catalog, &mut delta);
        }
        let hooks = next.start_hooks_of_loaded(&mut delta);
        TurnStart { delta, hooks }
    }

    /// Resources of loaded skills stand in prompts, so they are looked for anew.
    fn look_for_resources(&self, catalog: &Catalog, delta: &mut StateDelta) {
        for loaded in self.state.loaded(self.agent) {
            let dir = catalog.get(loaded.skill.as_str()).map(|entry| entry.open());
            let Some(Ok(resources)) = dir.map(|dir| dir.and_then(|dir| scan_resources(&dir))) else {
                continue;
            };
            if self.state.resources(&loaded.skill) != Some(&resources) {
                delta.push(StateOperation::Resources {
                    skill: loaded.skill.clone(),
                    resources,
                });
            }
        }
    }

    /// Skills that came by inheritance or with a stored state have had no start yet.
    fn start_hooks_of_loaded(&self, delta: &mut StateDelta) -> Vec<FiredHook> {
        let mut fired = Vec::new();
        for (_, skill) in self.state.loaded_views(self.agent) {
            fired.extend(fire(self.state, self.agent, skill, Moment::session_start(), delta));
        }
        fired
    }
}
