//! The inputs of the tools. Their doc comments are the descriptions in the tools' schemas.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skillbox_model::SkillName;

use crate::host_tools::HostTool;

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
    /// Paths of documents to show with it; they replace the selected documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docs: Option<Vec<String>>,
    /// Show all documents of the skill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_all_docs: Option<bool>,
    /// Values for `$ARGUMENTS` and `$1`, `$2`, … in the instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
}

/// Input of the tools that accept only a skill.
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
    /// Paths of documents, as `skill_list_docs` returns them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docs: Option<Vec<String>>,
    /// Select all documents of the skill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_all_docs: Option<bool>,
    /// How to change the selection; `replace` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<DocsMode>,
}

/// How to change the selected documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DocsMode {
    /// Adds the given documents.
    Add,
    /// Replaces the selection with the given documents.
    #[default]
    Replace,
    /// Clears the selection.
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
    /// Offset in bytes to start at; 0 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Maximum number of bytes to return; 65,536 by default, at most 1,048,576.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// Input of the search tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchInput {
    /// Words to search for; a blank query lists every skill.
    pub query: String,
}

/// Input of the tools of the `saa` dialect that accept a skill, by name or by path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SaaSkillInput {
    /// Name of the skill, as listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill_name: Option<String>,
    /// Directory of the skill, as listed. If a name is given too, both must refer to the same skill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill_path: Option<String>,
}

/// Input of `register_tools`, which a host calls. A tool is a name, or an object with `name`, `description` and
/// `input_schema`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegisterToolsInput {
    /// Tools by skill; they become visible when that skill is loaded.
    #[serde(default)]
    pub grouped_tools: BTreeMap<SkillName, Vec<HostTool>>,
    /// Tools that become visible when a skill that names them in `allowed-tools` is loaded.
    #[serde(default)]
    pub tools: Vec<HostTool>,
    /// Names of tools to remove, before the others are added.
    #[serde(default)]
    pub remove: Vec<String>,
}

/// Input of the tool of the `deepagents` dialect, which accepts a skill by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeepagentsSkillInput {
    /// Name of the skill to load from the available skills list.
    pub(crate) skill_name: String,
    /// Arguments of the skill, as the list of skills shows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) args: Option<String>,
}

/// Input of `read_skill` in the `saa` dialect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SaaReadInput {
    /// Name of the skill, as listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) skill_name: Option<String>,
    /// Directory of the skill, as listed. If a name is given too, both must refer to the same skill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) skill_path: Option<String>,
    /// Arguments of the skill, as listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) arguments: Option<String>,
}
