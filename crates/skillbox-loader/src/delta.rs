//! Changes to a session's state, as lists of operations.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use skillbox_model::{RelPath, SkillName};

use crate::agent::{AgentName, SkillFilter};
use crate::catalog_snapshot::{CatalogSnapshot, SnapshotDiff};
use crate::hooks::HookKey;
use crate::host_tools::HostTool;
use crate::skill_view::SkillView;
use crate::state::{AgentState, DocSelection, LoadMode, LoadedSkill, PromptNote, ResourceView, SkillsState};

/// A list of operations on a [`SkillsState`].
///
/// Calls that run in parallel against one state each produce a delta, and the deltas are applied one after the other.
/// Operations that add something (`Load`, `AddDocs`, `AddNote`, `Disable`, `MarkHookFired`, `RegisterTools`) merge: no addition is lost,
/// whatever the order. Operations that set or remove a value (`UpdateSkills`, `SetFilter`, `Unload`, `SelectDocs`,
/// `SetResources`, `Enable`, `RemoveNote`) override what was applied before them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StateDelta {
    /// The operations in order.
    pub operations: Vec<StateOperation>,
}

/// One change of the state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum StateOperation {
    /// Adds, replaces and removes skills.
    #[serde(rename = "skills")]
    UpdateSkills {
        /// Skills that are new or have changed.
        #[serde(rename = "seen", default, skip_serializing_if = "Vec::is_empty")]
        changed: Vec<Arc<SkillView>>,
        /// Skills that no longer exist.
        #[serde(rename = "gone", default, skip_serializing_if = "Vec::is_empty")]
        removed: Vec<SkillName>,
    },
    /// Sets which skills an agent can see.
    #[serde(rename = "agent")]
    SetFilter {
        /// The agent.
        agent: AgentName,
        /// The skills that it can see.
        filter: SkillFilter,
    },
    /// Loads a skill, or records another use of a loaded one.
    Load {
        /// The agent.
        #[serde(default, skip_serializing_if = "AgentName::is_main")]
        agent: AgentName,
        /// The skill.
        skill: SkillName,
        /// How long it stays loaded.
        mode: LoadMode,
        /// The value of `$ARGUMENTS`; without it, the previous value stays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Box<str>>,
    },
    /// Unloads a skill and clears its selected documents.
    Unload {
        /// The agent.
        #[serde(default, skip_serializing_if = "AgentName::is_main")]
        agent: AgentName,
        /// The skill.
        skill: SkillName,
    },
    /// Replaces the selected documents of a skill.
    SelectDocs {
        /// The agent.
        #[serde(default, skip_serializing_if = "AgentName::is_main")]
        agent: AgentName,
        /// The skill.
        skill: SkillName,
        /// `*` or a list.
        docs: DocSelection,
    },
    /// Adds to the selected documents of a skill.
    AddDocs {
        /// The agent.
        #[serde(default, skip_serializing_if = "AgentName::is_main")]
        agent: AgentName,
        /// The skill.
        skill: SkillName,
        /// The documents to add.
        docs: Vec<RelPath>,
    },
    /// Records the resources of a skill.
    #[serde(rename = "resources")]
    SetResources {
        /// The skill.
        skill: SkillName,
        /// The resources that a scan found.
        resources: Vec<ResourceView>,
    },
    /// Disables a skill for the session.
    Disable {
        /// The skill.
        skill: SkillName,
    },
    /// Enables a disabled skill again.
    Enable {
        /// The skill.
        skill: SkillName,
    },
    /// Adds tools of the host; a tool of the same name is replaced.
    RegisterTools {
        /// Tools by skill.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        grouped_tools: BTreeMap<SkillName, Vec<HostTool>>,
        /// Tools that a skill unlocks by name.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tools: Vec<HostTool>,
    },
    /// Removes tools of the host.
    UnregisterTools {
        /// Their names.
        tools: Vec<String>,
    },
    /// Records that a hook has fired and must not fire again.
    #[serde(rename = "hook_fired")]
    MarkHookFired {
        /// The agent.
        #[serde(default, skip_serializing_if = "AgentName::is_main")]
        agent: AgentName,
        /// The hook.
        hook: HookKey,
    },
    /// Adds a hook's note to the next prompt.
    AddNote {
        /// The agent.
        #[serde(default, skip_serializing_if = "AgentName::is_main")]
        agent: AgentName,
        /// The note.
        note: PromptNote,
    },
    /// Removes a note that a prompt has shown.
    #[serde(rename = "note_shown")]
    RemoveNote {
        /// The agent.
        #[serde(default, skip_serializing_if = "AgentName::is_main")]
        agent: AgentName,
        /// The note.
        note: PromptNote,
    },
}

impl StateDelta {
    /// Whether the delta contains no operation.
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

impl From<SnapshotDiff> for StateOperation {
    fn from(diff: SnapshotDiff) -> Self {
        Self::UpdateSkills {
            changed: diff.changed,
            removed: diff.removed,
        }
    }
}

impl SkillsState {
    /// Applies a delta. Every operation is valid on every state. Applying an operation twice counts one more use
    /// and changes nothing else.
    pub fn apply(&mut self, delta: &StateDelta) {
        for operation in &delta.operations {
            self.apply_operation(operation);
        }
    }

    fn apply_operation(&mut self, operation: &StateOperation) {
        match operation {
            StateOperation::UpdateSkills { changed, removed } => self.update_skills(changed, removed),
            StateOperation::SetFilter { agent, filter } => self.agent_mut(agent).filter = filter.clone(),
            StateOperation::Load {
                agent,
                skill,
                mode,
                arguments,
            } => self.agent_mut(agent).load(skill, *mode, arguments.as_deref()),
            StateOperation::Unload { agent, skill } => self.agent_mut(agent).unload(skill),
            StateOperation::SelectDocs { agent, skill, docs } => {
                let agent = self.agent_mut(agent);
                agent.docs.insert(skill.clone(), docs.clone());
                agent.record_use(skill);
            }
            StateOperation::AddDocs { agent, skill, docs } => {
                let agent = self.agent_mut(agent);
                agent.docs.entry(skill.clone()).or_default().add(docs.iter().cloned());
                agent.record_use(skill);
            }
            StateOperation::SetResources { skill, resources } => {
                self.resources.insert(skill.clone(), resources.clone());
            }
            StateOperation::Disable { skill } => {
                self.disabled.insert(skill.clone());
            }
            StateOperation::Enable { skill } => {
                self.disabled.remove(skill);
            }
            StateOperation::RegisterTools { grouped_tools, tools } => self.host_tools.register(grouped_tools, tools),
            StateOperation::UnregisterTools { tools } => self.host_tools.unregister(tools),
            StateOperation::MarkHookFired { agent, hook } => {
                self.agent_mut(agent).fired_hooks.insert(hook.clone());
            }
            StateOperation::AddNote { agent, note } => {
                let notes = &mut self.agent_mut(agent).notes;
                if !notes.contains(note) {
                    notes.push(note.clone());
                }
            }
            StateOperation::RemoveNote { agent, note } => self.agent_mut(agent).notes.retain(|known| known != note),
        }
    }

    fn agent_mut(&mut self, agent: &AgentName) -> &mut AgentState {
        self.agents.entry(agent.clone()).or_default()
    }

    /// Unloads skills that no longer exist; a changed skill stays loaded.
    fn update_skills(&mut self, changed: &[Arc<SkillView>], removed: &[SkillName]) {
        let diff = SnapshotDiff {
            changed: changed.to_vec(),
            removed: removed.to_vec(),
        };
        let skills = match &self.skills {
            Some(skills) => skills.apply(&diff),
            None => CatalogSnapshot::new(diff.changed),
        };
        self.skills = Some(skills);
        for skill in removed {
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
                last_use: 0,
            });
        }
        self.record_use(skill);
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
        self.fired_hooks.retain(|hook| hook.skill != *skill);
    }

    fn record_use(&mut self, skill: &SkillName) {
        self.use_count += 1;
        let now = self.use_count;
        for loaded in self.loaded.iter_mut().filter(|loaded| loaded.skill == *skill) {
            loaded.last_use = now;
        }
    }
}
