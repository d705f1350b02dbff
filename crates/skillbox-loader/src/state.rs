//! What a session remembers: the skills it knows, and what each agent has loaded of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skillbox_model::{RelPath, SkillName};

use crate::agent::{AgentName, SkillFilter};
use crate::skill_view::SkillView;
use crate::snapshot::Snapshot;
use crate::steering::HookKey;

/// The state of one session. It changes only by [`apply`](Self::apply), so that every change is a delta that
/// can be stored, sent and merged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SkillsState {
    /// The skills as the turn found them; none before the first turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) skills: Option<Snapshot>,
    /// What each agent has loaded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) agents: BTreeMap<AgentName, AgentState>,
    /// Resources of skills that were loaded, as far as they were looked for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) resources: BTreeMap<SkillName, Vec<ResourceView>>,
    /// Skills that this session does without.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) disabled: BTreeSet<SkillName>,
}

/// What one agent has loaded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct AgentState {
    #[serde(default)]
    pub(crate) filter: SkillFilter,
    /// In the order of loading.
    #[serde(default)]
    pub(crate) loaded: Vec<LoadedSkill>,
    /// Documents that go with a skill once it is loaded.
    #[serde(default)]
    pub(crate) docs: BTreeMap<SkillName, DocSelection>,
    /// Hooks that have fired and fire no more.
    #[serde(default)]
    pub(crate) fired: BTreeSet<HookKey>,
    /// What hooks have to say in the next prompt.
    #[serde(default)]
    pub(crate) notes: Vec<PromptNote>,
    /// Counts uses, so that the least recent can be found.
    #[serde(default)]
    pub(crate) uses: u64,
}

/// One loaded skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedSkill {
    /// The skill.
    pub skill: SkillName,
    /// How long it stays.
    pub mode: LoadMode,
    /// What `$ARGUMENTS` stands for in its instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Box<str>>,
    /// When it was last used, in the agent's count of uses.
    #[serde(default)]
    pub(crate) used: u64,
}

/// How long a loaded skill stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadMode {
    /// Until it is unloaded.
    #[default]
    Session,
    /// Until the agent's next turn starts.
    Turn,
    /// Until it has stood in one prompt.
    Once,
}

impl LoadMode {
    /// The word on the wire and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Turn => "turn",
            Self::Once => "once",
        }
    }
}

/// Which documents of a loaded skill stand in the prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocSelection {
    /// All there are.
    All,
    /// These, in this order, each once.
    Chosen(Vec<RelPath>),
}

impl Default for DocSelection {
    fn default() -> Self {
        Self::Chosen(Vec::new())
    }
}

impl DocSelection {
    /// Documents in the given order, each once.
    pub fn chosen(docs: impl IntoIterator<Item = RelPath>) -> Self {
        let mut selection = Self::default();
        selection.add(docs);
        selection
    }

    /// Whether no document is selected.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Chosen(docs) if docs.is_empty())
    }

    /// Adds documents; to all of them nothing can be added.
    pub fn add(&mut self, more: impl IntoIterator<Item = RelPath>) {
        let Self::Chosen(docs) = self else { return };
        for doc in more {
            if !docs.contains(&doc) {
                docs.push(doc);
            }
        }
    }
}

impl Serialize for DocSelection {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::All => serializer.serialize_str("*"),
            Self::Chosen(docs) => docs.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for DocSelection {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Wire {
            Star(String),
            Docs(Vec<RelPath>),
        }
        match Wire::deserialize(deserializer)? {
            Wire::Star(star) if star == "*" => Ok(Self::All),
            Wire::Star(other) => Err(serde::de::Error::custom(format!(
                "{other:?} is no selection of documents: `*` or a list of paths is expected"
            ))),
            Wire::Docs(docs) => Ok(Self::chosen(docs)),
        }
    }
}

/// One resource of a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceView {
    /// Path below the skill.
    pub path: RelPath,
    /// What it is, by its directory.
    #[serde(rename = "type")]
    pub kind: ResourceType,
}

/// What a resource is. The order is that of the names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResourceType {
    /// From `assets/`.
    Asset,
    /// Beside SKILL.md.
    Other,
    /// From `references/`.
    Reference,
    /// From `scripts/`.
    Script,
}

impl ResourceType {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Asset => "asset",
            Self::Other => "other",
            Self::Reference => "reference",
            Self::Script => "script",
        }
    }
}

/// A text that a skill's hook puts into the next prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptNote {
    /// The skill whose hook it is.
    pub skill: SkillName,
    /// What it says.
    pub text: Box<str>,
}

impl SkillsState {
    /// The skills as the turn found them; none before the first turn.
    pub fn snapshot(&self) -> Option<&Snapshot> {
        self.skills.as_ref()
    }

    /// The same without the skills it knows, for stores of hosts that look for skills at every start anyway. What
    /// is loaded comes back into sight with the next turn.
    pub fn without_snapshot(&self) -> Self {
        Self {
            skills: None,
            ..self.clone()
        }
    }

    /// The agents that have loaded or chosen something, or were given skills of their own.
    pub fn agents(&self) -> impl Iterator<Item = &AgentName> {
        self.agents.keys()
    }

    /// The skills that the agent can see: not filtered away, not disabled.
    pub fn visible<'s>(&'s self, agent: &AgentName) -> impl Iterator<Item = &'s Arc<SkillView>> + Clone + use<'s> {
        let filter = self.agents.get(agent).map(|agent| &agent.filter);
        let all = self.skills.as_ref().map_or(&[][..], Snapshot::skills);
        all.iter().filter(move |skill| {
            filter.is_none_or(|filter| filter.shows(&skill.name)) && !self.disabled.contains(&skill.name)
        })
    }

    /// The skill of that name, if the agent can see it.
    pub fn visible_skill(&self, agent: &AgentName, name: &str) -> Option<&Arc<SkillView>> {
        let skill = self.known_skill(agent, name)?;
        (!self.disabled.contains(&skill.name)).then_some(skill)
    }

    /// The skill of that name, disabled or not, if the agent may know of it.
    pub(crate) fn known_skill(&self, agent: &AgentName, name: &str) -> Option<&Arc<SkillView>> {
        let skill = self.skills.as_ref()?.get(name)?;
        let filter = self.agents.get(agent).map(|agent| &agent.filter);
        filter.is_none_or(|filter| filter.shows(&skill.name)).then_some(skill)
    }

    /// What the agent has loaded and can see, in the order of loading.
    pub fn loaded<'s>(&'s self, agent: &AgentName) -> impl Iterator<Item = &'s LoadedSkill> + Clone + use<'s> {
        self.loaded_views(agent).map(|(loaded, _)| loaded)
    }

    /// The same, each with what is known about it.
    pub(crate) fn loaded_views<'s>(
        &'s self,
        agent: &AgentName,
    ) -> impl Iterator<Item = (&'s LoadedSkill, &'s Arc<SkillView>)> + Clone + use<'s> {
        let agent = self.agents.get(agent);
        let loaded = agent.map_or(&[][..], |agent| &agent.loaded);
        loaded.iter().filter_map(move |loaded| {
            let shows = agent.is_some_and(|agent| agent.filter.shows(&loaded.skill));
            let skill = self.skills.as_ref()?.get(loaded.skill.as_str())?;
            (shows && !self.disabled.contains(&loaded.skill)).then_some((loaded, skill))
        })
    }

    /// Whether the agent has loaded the skill.
    pub fn is_loaded(&self, agent: &AgentName, skill: &SkillName) -> bool {
        self.loaded(agent).any(|loaded| loaded.skill == *skill)
    }

    /// The documents that go with the skill.
    pub fn docs(&self, agent: &AgentName, skill: &SkillName) -> Option<&DocSelection> {
        self.agents.get(agent)?.docs.get(skill)
    }

    /// The skill's resources, as far as they were looked for.
    pub fn resources(&self, skill: &SkillName) -> Option<&[ResourceView]> {
        self.resources.get(skill).map(Vec::as_slice)
    }

    /// Skills that this session does without.
    pub fn disabled(&self) -> &BTreeSet<SkillName> {
        &self.disabled
    }

    /// What hooks have to say in the agent's next prompt.
    pub fn notes(&self, agent: &AgentName) -> &[PromptNote] {
        self.agents.get(agent).map_or(&[], |agent| &agent.notes)
    }

    /// The loaded skill that was used least recently.
    pub(crate) fn least_recently_used(&self, agent: &AgentName) -> Option<&SkillName> {
        self.loaded(agent)
            .min_by_key(|loaded| loaded.used)
            .map(|loaded| &loaded.skill)
    }
}
