//! The results of the tools. Their doc comments are the descriptions in the tools' schemas.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skillbox_model::{ContentEncoding, SessionId, SkillName};

use super::input::DocsMode;
use crate::hooks::MatchedHook;
use crate::state::{LoadMode, ResourceType};

/// Result of `skill_list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ListResult {
    /// The skills in catalog order, or by rank if the call contains a query.
    pub skills: Vec<ListedSkill>,
}

/// One skill in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ListedSkill {
    /// The name that the other tools accept.
    pub name: SkillName,
    /// What it does and when to use it.
    pub description: String,
    /// The source it comes from.
    pub source: String,
    /// Whether this agent has loaded it.
    pub loaded: bool,
    /// Whether it is disabled in this session.
    pub disabled: bool,
    /// Whether only the user may load it.
    pub manual_only: bool,
    /// Whether the user can invoke it.
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
    /// How long it stays loaded.
    pub mode: LoadMode,
    /// Its directory, as scripts and prompts refer to it.
    pub directory: String,
    /// The text of its SKILL.md, unless the host shows it in the prompt only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The selected documents.
    pub docs: Vec<ResultDoc>,
    /// How many documents the skill has.
    #[serde(rename = "docs_available")]
    pub doc_count: usize,
    /// Files of the skill by type, as paths below the skill.
    #[schemars(with = "BTreeMap<String, Vec<String>>")]
    pub resources: BTreeMap<ResourceType, Vec<String>>,
    /// The number of files by type, such as `1 reference, 2 scripts`.
    pub resource_summary: String,
    /// The tools it declares.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
    /// The skill that was unloaded because of the load limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evicted: Option<SkillName>,
    /// The model it asks for; the host decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The context it asks for, such as `fork`; the host decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The agent that should run it in a context of its own; the host decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The session in which it is loaded, if it asks for one of its own. The session of the caller does not change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fork: Option<ForkedSession>,
    /// Hooks that fired when the skill was loaded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<serde_json::Value>")]
    pub hooks: Vec<MatchedHook>,
    /// Problems that did not prevent loading.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The session of a skill with `context: fork`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForkedSession {
    /// Its id, if the session of the caller is stored. The agent that runs the skill uses this session, and returns its
    /// result with `return_result`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub session: Option<SessionId>,
    /// The agent that should run the skill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The model that the skill asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// A document with its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ResultDoc {
    /// Path below the skill.
    pub path: String,
    /// The text, unless the host shows it in the prompt only.
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
    /// The skills that are loaded now.
    pub loaded: Vec<SkillName>,
}

/// Result of `skill_select_docs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SelectDocsResult {
    /// The skill.
    pub skill: SkillName,
    /// How the selection was changed.
    pub mode: DocsMode,
    /// The selected documents, in order.
    pub selected_docs: Vec<String>,
    /// Whether all documents are selected, including future ones.
    pub include_all_docs: bool,
    /// Whether the skill is loaded; documents of a skill that is not loaded are shown once it is.
    pub loaded: bool,
    /// The documents that this call selected, for hosts that do not show them in a prompt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub docs: Vec<ResultDoc>,
    /// Documents that could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Result of `register_tools`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RegisterToolsResult {
    /// The names of all tools that the host has registered in this session.
    pub registered: Vec<String>,
    /// The names of those that the agent sees now.
    pub visible: Vec<String>,
    /// Skills of the call that the agent does not see, for example misspelt ones. Their tools are registered anyway.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown_skills: Vec<SkillName>,
}

/// Result of `skill_read`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReadResult {
    /// The skill.
    pub skill: SkillName,
    /// Path below the skill.
    pub path: String,
    /// Size of the whole file in bytes.
    pub size_bytes: u64,
    /// Offset of this chunk in bytes.
    pub offset: u64,
    /// The chunk: text, or base64 if `encoding` says so.
    pub content: String,
    /// The encoding of `content`, if it is not plain text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<ContentEncoding>,
    /// Offset of the next chunk, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<u64>,
}

/// Result of the search tools.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SearchResult {
    /// The query.
    pub query: String,
    /// The hits, best first.
    pub hits: Vec<SearchHit>,
}

/// A skill that matches the query.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SearchHit {
    /// The skill.
    pub name: SkillName,
    /// What it does and when to use it.
    pub description: String,
    /// Its directory, as prompts show it.
    pub path: String,
    /// What matches: 0 exact name, 1 name prefix, 2 part of the name, 3 description or path, 4 body.
    pub rank: u8,
    /// The matching line of the instructions, if only they match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
    /// Whether this agent has loaded it.
    pub loaded: bool,
}

/// Result of `skill_disable` and `skill_enable`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SetDisabledResult {
    /// The skill.
    pub skill: SkillName,
    /// Whether it is disabled now.
    pub disabled: bool,
    /// Whether this call changed that.
    pub changed: bool,
}
