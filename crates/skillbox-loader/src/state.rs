//! The state of a session: the skills it knows, and which of them each agent has loaded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skillbox_model::{RelPath, SkillName};

use crate::agent::{AgentName, SkillFilter};
use crate::catalog_snapshot::CatalogSnapshot;
use crate::hooks::HookKey;
use crate::host_tools::HostTools;
use crate::skill_view::SkillView;

/// The state of one session. Only [`apply`](Self::apply) changes it, so that every change is a delta that can be
/// stored, sent and merged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SkillsState {
    /// The skills as of the start of the turn; none before the first turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) skills: Option<CatalogSnapshot>,
    /// What each agent has loaded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) agents: BTreeMap<AgentName, AgentState>,
    /// Resources by skill, for the loaded skills that have been scanned.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) resources: BTreeMap<SkillName, Vec<ResourceView>>,
    /// Skills that are disabled in this session.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) disabled: BTreeSet<SkillName>,
    /// Tools that the host registered.
    #[serde(default, skip_serializing_if = "HostTools::is_empty")]
    pub(crate) host_tools: HostTools,
}

/// The state of one agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct AgentState {
    #[serde(default)]
    pub(crate) filter: SkillFilter,
    /// In loading order.
    #[serde(default)]
    pub(crate) loaded: Vec<LoadedSkill>,
    /// Selected documents by skill, shown while the skill is loaded.
    #[serde(default)]
    pub(crate) docs: BTreeMap<SkillName, DocSelection>,
    /// Hooks that have fired and must not fire again.
    #[serde(rename = "fired", default)]
    pub(crate) fired_hooks: BTreeSet<HookKey>,
    /// Notes of hooks for the next prompt.
    #[serde(default)]
    pub(crate) notes: Vec<PromptNote>,
    /// Counts uses of skills, to find the least recently used one.
    #[serde(rename = "uses", default)]
    pub(crate) use_count: u64,
}

/// One loaded skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedSkill {
    /// The skill.
    pub skill: SkillName,
    /// How long it stays loaded.
    pub mode: LoadMode,
    /// The value of `$ARGUMENTS` in its instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Box<str>>,
    /// The agent's use count at the last use.
    #[serde(rename = "used", default)]
    pub(crate) last_use: u64,
}

/// How long a skill stays loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadMode {
    /// Until it is unloaded.
    #[default]
    Session,
    /// Until the agent's next turn starts.
    Turn,
    /// Until one prompt has shown it.
    Once,
}

impl LoadMode {
    /// The name in JSON and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Turn => "turn",
            Self::Once => "once",
        }
    }
}

/// Which documents of a loaded skill are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocSelection {
    /// All documents.
    All,
    /// These, in this order, without duplicates.
    Chosen(Vec<RelPath>),
}

impl Default for DocSelection {
    fn default() -> Self {
        Self::Chosen(Vec::new())
    }
}

impl DocSelection {
    /// Selects documents in the given order and drops duplicates.
    pub fn chosen(docs: impl IntoIterator<Item = RelPath>) -> Self {
        let mut selection = Self::default();
        selection.add(docs);
        selection
    }

    /// Whether no document is selected.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Chosen(docs) if docs.is_empty())
    }

    /// Adds documents. Adding to [`All`](Self::All) changes nothing.
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
                "{other:?} is not a document selection: expected `*` or a list of paths"
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
    /// Its type, which follows from its directory.
    #[serde(rename = "type")]
    pub kind: ResourceType,
}

/// The type of a resource. Variants are sorted by name.
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
    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Asset => "asset",
            Self::Other => "other",
            Self::Reference => "reference",
            Self::Script => "script",
        }
    }
}

/// A text for the next prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptNote {
    /// The skill that it comes from.
    pub skill: SkillName,
    /// The text.
    pub text: Box<str>,
    /// What produced it.
    #[serde(default, skip_serializing_if = "NoteKind::is_hook")]
    pub kind: NoteKind,
}

/// What produced a note.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// A hook of a loaded skill.
    #[default]
    Hook,
    /// A forked skill, which returned its result.
    ForkResult,
}

impl NoteKind {
    fn is_hook(&self) -> bool {
        *self == Self::Hook
    }
}

impl SkillsState {
    /// The skills as of the start of the turn; none before the first turn.
    pub fn snapshot(&self) -> Option<&CatalogSnapshot> {
        self.skills.as_ref()
    }

    /// Returns the state without its snapshot, for hosts that discover skills at every start anyway. Loaded skills
    /// are visible again after the next turn starts.
    pub fn without_snapshot(&self) -> Self {
        Self {
            skills: None,
            ..self.clone()
        }
    }

    /// The agents that have loaded a skill, selected a document, or have a filter.
    pub fn agents(&self) -> impl Iterator<Item = &AgentName> {
        self.agents.keys()
    }

    /// The skills that the agent can see: those that its filter includes and that are not disabled.
    pub fn visible<'s>(&'s self, agent: &AgentName) -> impl Iterator<Item = &'s Arc<SkillView>> + Clone + use<'s> {
        let filter = self.agents.get(agent).map(|agent| &agent.filter);
        let all = self.skills.as_ref().map_or(&[][..], CatalogSnapshot::skills);
        all.iter().filter(move |skill| {
            filter.is_none_or(|filter| filter.includes(&skill.name)) && !self.disabled.contains(&skill.name)
        })
    }

    /// Finds a skill by name, if the agent can see it.
    pub fn visible_skill(&self, agent: &AgentName, name: &str) -> Option<&Arc<SkillView>> {
        let skill = self.skill_in_filter(agent, name)?;
        (!self.disabled.contains(&skill.name)).then_some(skill)
    }

    /// Finds a skill by name, disabled or not, if the agent's filter includes it.
    pub(crate) fn skill_in_filter(&self, agent: &AgentName, name: &str) -> Option<&Arc<SkillView>> {
        let skill = self.skills.as_ref()?.get(name)?;
        self.filter_includes(agent, &skill.name).then_some(skill)
    }

    /// Whether the agent may see a skill of this name, which need not exist.
    pub fn may_see(&self, agent: &AgentName, name: &str) -> bool {
        SkillName::parse(name).is_ok_and(|name| self.filter_includes(agent, &name))
    }

    fn filter_includes(&self, agent: &AgentName, name: &SkillName) -> bool {
        let filter = self.agents.get(agent).map(|agent| &agent.filter);
        filter.is_none_or(|filter| filter.includes(name))
    }

    /// The skills that the agent has loaded and can see, in loading order.
    pub fn loaded<'s>(&'s self, agent: &AgentName) -> impl Iterator<Item = &'s LoadedSkill> + Clone + use<'s> {
        self.loaded_views(agent).map(|(loaded, _)| loaded)
    }

    /// The skills that the agent has loaded and can see, each with its view.
    pub(crate) fn loaded_views<'s>(
        &'s self,
        agent: &AgentName,
    ) -> impl Iterator<Item = (&'s LoadedSkill, &'s Arc<SkillView>)> + Clone + use<'s> {
        let agent = self.agents.get(agent);
        let loaded = agent.map_or(&[][..], |agent| &agent.loaded);
        loaded.iter().filter_map(move |loaded| {
            let is_included = agent.is_some_and(|agent| agent.filter.includes(&loaded.skill));
            let skill = self.skills.as_ref()?.get(loaded.skill.as_str())?;
            (is_included && !self.disabled.contains(&loaded.skill)).then_some((loaded, skill))
        })
    }

    /// Whether the agent has loaded the skill.
    pub fn is_loaded(&self, agent: &AgentName, skill: &SkillName) -> bool {
        self.loaded(agent).any(|loaded| loaded.skill == *skill)
    }

    /// The selected documents of a skill.
    pub fn docs(&self, agent: &AgentName, skill: &SkillName) -> Option<&DocSelection> {
        self.agents.get(agent)?.docs.get(skill)
    }

    /// The resources of a skill, if they have been scanned.
    pub fn resources(&self, skill: &SkillName) -> Option<&[ResourceView]> {
        self.resources.get(skill).map(Vec::as_slice)
    }

    /// Skills that are disabled in this session.
    pub fn disabled(&self) -> &BTreeSet<SkillName> {
        &self.disabled
    }

    /// Notes of hooks for the agent's next prompt.
    pub fn notes(&self, agent: &AgentName) -> &[PromptNote] {
        self.agents.get(agent).map_or(&[], |agent| &agent.notes)
    }

    /// The model that the agent's loaded skills ask for: that of the skill loaded last among those that name one.
    pub fn requested_model(&self, agent: &AgentName) -> Option<&str> {
        self.loaded_views(agent).filter_map(|(_, skill)| skill.model()).last()
    }

    /// The model that a loaded skill asks for.
    pub fn model_of(&self, skill: &SkillName) -> Option<&str> {
        self.skills.as_ref()?.get(skill.as_str())?.model()
    }

    /// The least recently used of the loaded skills.
    pub(crate) fn least_recently_used(&self, agent: &AgentName) -> Option<&SkillName> {
        self.loaded(agent)
            .min_by_key(|loaded| loaded.last_use)
            .map(|loaded| &loaded.skill)
    }
}
