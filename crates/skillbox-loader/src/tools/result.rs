//! What the tools give.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use skillbox_model::{ContentEncoding, SkillName};

use super::input::DocsMode;
use crate::state::{LoadMode, ResourceType};
use crate::steering::FiredHook;

/// Result of `skill_list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ListResult {
    /// The skills, in the order of the catalogue, or by rank where a query was given.
    pub skills: Vec<ListedSkill>,
}

/// One skill in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ListedSkill {
    /// The name that the other tools take.
    pub name: SkillName,
    /// What it does and when to use it.
    pub description: String,
    /// Where it comes from.
    pub source: String,
    /// Whether this agent has loaded it.
    pub loaded: bool,
    /// Whether this session does without it.
    pub disabled: bool,
    /// Whether only a person may load it.
    pub manual_only: bool,
    /// Whether it is offered to people.
    pub user_invocable: bool,
    /// What to write as arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument_hint: Option<String>,
}

/// Result of `skill_load`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LoadResult {
    /// The skill.
    pub skill: SkillName,
    /// Whether it was loaded before this call.
    pub already_loaded: bool,
    /// How long it stays.
    pub mode: LoadMode,
    /// Its directory, as scripts and prompts name it.
    pub directory: String,
    /// The text of its SKILL.md, unless the host puts that into the prompt alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The chosen documents.
    pub docs: Vec<DocText>,
    /// How many documents there are to choose from.
    pub docs_available: usize,
    /// Files that come with it, by kind, as paths below the skill.
    #[schemars(with = "BTreeMap<String, Vec<String>>")]
    pub resources: BTreeMap<ResourceType, Vec<String>>,
    /// The same in a few words, such as `1 reference, 2 scripts`.
    pub resource_summary: String,
    /// The tools it declares.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
    /// The skill that made room for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evicted: Option<SkillName>,
    /// The model it asks for; the host decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The context it asks for, such as `fork`; the host decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Hooks whose moment has come with the loading.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<serde_json::Value>")]
    pub hooks: Vec<FiredHook>,
    /// What the caller should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// One document with its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DocText {
    /// Path below the skill.
    pub path: String,
    /// The text, unless the host puts it into the prompt alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Whether `content` is only the beginning.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// Result of `skill_unload`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnloadResult {
    /// The skill.
    pub skill: SkillName,
    /// Whether it was loaded before this call.
    pub was_loaded: bool,
    /// What is loaded now.
    pub loaded: Vec<SkillName>,
}

/// Result of `skill_select_docs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SelectDocsResult {
    /// The skill.
    pub skill: SkillName,
    /// What was done.
    pub mode: DocsMode,
    /// The documents chosen now, in order.
    pub selected_docs: Vec<String>,
    /// Whether these are all, and future ones too.
    pub include_all_docs: bool,
    /// Whether the skill is loaded; documents of one that is not are shown once it is.
    pub loaded: bool,
}

/// Result of `skill_read`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReadResult {
    /// The skill.
    pub skill: SkillName,
    /// Path below the skill.
    pub path: String,
    /// Size of the whole file.
    pub size_bytes: u64,
    /// Where this piece starts.
    pub offset: u64,
    /// The piece: text, or base64 where `encoding` says so.
    pub content: String,
    /// How `content` is written, when it is not plain text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<ContentEncoding>,
    /// Where the next piece starts, if there is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<u64>,
}

/// Result of the search.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SearchResult {
    /// What was looked for.
    pub query: String,
    /// The hits, best first.
    pub hits: Vec<SearchHit>,
}

/// One skill that was found.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SearchHit {
    /// The skill.
    pub name: SkillName,
    /// What it does and when to use it.
    pub description: String,
    /// Its directory, as prompts show it.
    pub path: String,
    /// 0 the name itself, 1 its beginning, 2 inside it, 3 description or path, 4 the body.
    pub rank: u8,
    /// The line of the instructions that answers, where only they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
    /// Whether this agent has loaded it.
    pub loaded: bool,
}

/// Result of disabling and enabling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DisableResult {
    /// The skill.
    pub skill: SkillName,
    /// Whether this session does without it now.
    pub disabled: bool,
    /// Whether this call changed that.
    pub changed: bool,
}
