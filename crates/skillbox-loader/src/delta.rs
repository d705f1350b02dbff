//! Changes of a session's state, as operations that merge.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use skillbox_model::{RelPath, SkillName};

use crate::agent::{AgentName, SkillFilter};
use crate::skill_view::SkillView;
use crate::snapshot::{Snapshot, SnapshotChange};
use crate::state::{AgentState, DocSelection, LoadMode, LoadedSkill, PromptNote, ResourceView, SkillsState};
use crate::steering::HookKey;

/// A list of operations.
///
/// Calls that ran in parallel against one state have each their own delta; applied one after the other, in any
/// order, none of them undoes what another one added.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StateDelta {
    /// The operations in order.
    pub operations: Vec<StateOperation>,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum StateOperation {
    /// Skills became known, became different, or are no more.
    Skills {
        /// New and different ones.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        seen: Vec<Arc<SkillView>>,
        /// Those that are no more.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        gone: Vec<SkillName>,
    },
    /// An agent took up work.
    Agent {
        /// The agent.
        agent: AgentName,
        /// What it can see.
        filter: SkillFilter,
    },
    /// A skill was loaded, or used again.
    Load {
        /// The agent.
        #[serde(default, skip_serializing_if = "AgentName::is_main")]
        agent: AgentName,
        /// The skill.
        skill: SkillName,
        /// How long it stays.
        mode: LoadMode,
        /// What `$ARGUMENTS` stands for; without it, what it stood for before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Box<str>>,
    },
    /// A skill left, with its documents.
    Unload {
        /// The agent.
        #[serde(default, skip_serializing_if = "AgentName::is_main")]
        agent: AgentName,
        /// The skill.
        skill: SkillName,
    },
    /// The documents of a skill were chosen anew.
    SelectDocs {
        /// The agent.
        #[serde(default, skip_serializing_if = "AgentName::is_main")]
        agent: AgentName,
        /// The skill.
        skill: SkillName,
        /// `*` or a list.
        docs: DocSelection,
    },
    /// Documents were added to those of a skill.
    AddDocs {
        /// The agent.
        #[serde(default, skip_serializing_if = "AgentName::is_main")]
        agent: AgentName,
        /// The skill.
        skill: SkillName,
        /// The added ones.
        docs: Vec<RelPath>,
    },
    /// The resources of a skill were looked for.
    Resources {
        /// The skill.
        skill: SkillName,
        /// What was found.
        resources: Vec<ResourceView>,
    },
    /// The session does without a skill from here on.
    Disable {
        /// The skill.
        skill: SkillName,
    },
    /// The session takes it back.
    Enable {
        /// The skill.
        skill: SkillName,
    },
    /// A hook has fired and fires no more.
    HookFired {
        /// The agent.
        #[serde(default, skip_serializing_if = "AgentName::is_main")]
        agent: AgentName,
        /// The hook.
        hook: HookKey,
    },
    /// A hook has something to say in the next prompt.
    AddNote {
        /// The agent.
        #[serde(default, skip_serializing_if = "AgentName::is_main")]
        agent: AgentName,
        /// What it says.
        note: PromptNote,
    },
    /// That was said.
    NoteShown {
        /// The agent.
        #[serde(default, skip_serializing_if = "AgentName::is_main")]
        agent: AgentName,
        /// What it said.
        note: PromptNote,
    },
}

impl StateDelta {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    pub(crate) fn push(&mut self, operation: StateOperation) {
        self.operations.push(operation);
    }
}

impl From<StateOperation> for StateDelta {
    fn from(operation: StateOperation) -> Self {
        Self {
            operations: vec![operation],
        }
    }
}

impl FromIterator<StateOperation> for StateDelta {
    fn from_iter<I: IntoIterator<Item = StateOperation>>(operations: I) -> Self {
        Self {
            operations: operations.into_iter().collect(),
        }
    }
}

impl From<SnapshotChange> for StateOperation {
    fn from(change: SnapshotChange) -> Self {
        Self::Skills {
            seen: change.seen,
            gone: change.gone,
        }
    }
}

impl SkillsState {
    /// Makes the changes of a delta. Every operation can be made on every state, and making it twice counts as
    /// one more use but changes nothing else.
    pub fn apply(&mut self, delta: &StateDelta) {
        for operation in &delta.operations {
            self.apply_one(operation);
        }
    }

    fn apply_one(&mut self, operation: &StateOperation) {
        match operation {
            StateOperation::Skills { seen, gone } => self.change_skills(seen, gone),
            StateOperation::Agent { agent, filter } => self.agent(agent).filter = filter.clone(),
            StateOperation::Load {
                agent,
                skill,
                mode,
                arguments,
            } => self.agent(agent).load(skill, *mode, arguments.as_deref()),
            StateOperation::Unload { agent, skill } => self.agent(agent).unload(skill),
            StateOperation::SelectDocs { agent, skill, docs } => {
                let agent = self.agent(agent);
                agent.docs.insert(skill.clone(), docs.clone());
                agent.touch(skill);
            }
            StateOperation::AddDocs { agent, skill, docs } => {
                let agent = self.agent(agent);
                agent.docs.entry(skill.clone()).or_default().add(docs.iter().cloned());
                agent.touch(skill);
            }
            StateOperation::Resources { skill, resources } => {
                self.resources.insert(skill.clone(), resources.clone());
            }
            StateOperation::Disable { skill } => {
                self.disabled.insert(skill.clone());
            }
            StateOperation::Enable { skill } => {
                self.disabled.remove(skill);
            }
            StateOperation::HookFired { agent, hook } => {
                self.agent(agent).fired.insert(hook.clone());
            }
            StateOperation::AddNote { agent, note } => {
                let notes = &mut self.agent(agent).notes;
                if !notes.contains(note) {
                    notes.push(note.clone());
                }
            }
            StateOperation::NoteShown { agent, note } => self.agent(agent).notes.retain(|known| known != note),
        }
    }

    fn agent(&mut self, agent: &AgentName) -> &mut AgentState {
        self.agents.entry(agent.clone()).or_default()
    }

    /// A skill that is gone takes along what was loaded of it; one that reads differently stays loaded.
    fn change_skills(&mut self, seen: &[Arc<SkillView>], gone: &[SkillName]) {
        let change = SnapshotChange {
            seen: seen.to_vec(),
            gone: gone.to_vec(),
        };
        let changed = match &self.skills {
            Some(skills) => skills.with(&change),
            None => Snapshot::new(change.seen),
        };
        self.skills = Some(changed);
        for skill in gone {
            self.resources.remove(skill);
            for agent in self.agents.values_mut() {
                agent.unload(skill);
            }
        }
    }
}

impl AgentState {
    fn load(&mut self, skill: &SkillName, mode: LoadMode, arguments: Option<&str>) {
        if !self.loaded.iter().any(|loaded| loaded.skill == *skill) {
            self.loaded.push(LoadedSkill {
                skill: skill.clone(),
                mode,
                arguments: None,
                used: 0,
            });
        }
        self.touch(skill);
        for loaded in self.loaded.iter_mut().filter(|loaded| loaded.skill == *skill) {
            loaded.mode = mode;
            if let Some(arguments) = arguments {
                loaded.arguments = Some(arguments.into());
            }
        }
    }

    fn unload(&mut self, skill: &SkillName) {
        self.loaded.retain(|loaded| loaded.skill != *skill);
        self.docs.remove(skill);
        self.fired.retain(|hook| hook.skill != *skill);
    }

    fn touch(&mut self, skill: &SkillName) {
        self.uses += 1;
        let now = self.uses;
        for loaded in self.loaded.iter_mut().filter(|loaded| loaded.skill == *skill) {
            loaded.used = now;
        }
    }
}
