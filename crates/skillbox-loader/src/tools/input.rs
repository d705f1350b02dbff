//! What the tools are called with.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Input of `skill_list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListInput {
    /// Only skills whose name, description or path matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
}

/// Input of `skill_load`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadInput {
    /// Name of the skill to load.
    pub skill: String,
    /// Paths of documents to show with it; they replace those chosen before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docs: Option<Vec<String>>,
    /// Show all documents of the skill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_all_docs: Option<bool>,
    /// What `$ARGUMENTS` and `$1`, `$2`, … stand for in the instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
}

/// Input of the tools that take a skill and nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SkillInput {
    /// Name of the skill.
    pub skill: String,
}

/// Input of `skill_select_docs`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SelectDocsInput {
    /// Name of the skill.
    pub skill: String,
    /// Paths of documents, as `skill_list_docs` gives them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docs: Option<Vec<String>>,
    /// Take all documents of the skill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_all_docs: Option<bool>,
    /// What happens to the documents chosen before; `replace` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<DocsMode>,
}

/// What happens to the documents chosen before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DocsMode {
    /// They stay, and the given ones come to them.
    Add,
    /// The given ones take their place.
    #[default]
    Replace,
    /// They go, and none take their place.
    Clear,
}

/// Input of `skill_read`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadInput {
    /// Name of the skill.
    pub skill: String,
    /// Path of a file inside the skill.
    pub path: String,
    /// Byte to start at; 0 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// At most so many bytes; 65,536 by default, at most 1,048,576.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// Input of the search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchInput {
    /// Words to look for in names, descriptions and paths; blank lists every skill.
    pub query: String,
}

/// A skill by name or by path, as one dialect takes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SkillPointer {
    /// Name of the skill, as listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill_name: Option<String>,
    /// Directory of the skill, as listed. With a name as well, both must mean the same skill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill_path: Option<String>,
}

/// A skill by its name, as one dialect takes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NamedSkill {
    /// Name of the skill to load from the available skills list.
    pub(crate) skill_name: String,
}
