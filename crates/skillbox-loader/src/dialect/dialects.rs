//! The five dialects and their tools.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::Tool;

/// A set of tool names, parameters, texts and state keys. All dialects share the same operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// Our own dialect, with every tool.
    #[default]
    Skillbox,
    /// trpc-agent-go: tools to load, to list and select documents, and to run.
    Trpc,
    /// deepagents: one tool to load; the host's file tools do the rest.
    Deepagents,
    /// Spring AI Alibaba: tools to read, search and disable.
    Saa,
    /// The Agent Skills reference: a list in XML and no tools.
    Agentskills,
}

/// A text that is not the name of a dialect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a dialect: expected skillbox, trpc, deepagents, saa or agentskills")]
pub struct DialectError(pub String);

impl Dialect {
    /// Every dialect.
    pub const ALL: &'static [Self] = &[
        Self::Skillbox,
        Self::Trpc,
        Self::Deepagents,
        Self::Saa,
        Self::Agentskills,
    ];

    /// The name in JSON and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Skillbox => "skillbox",
            Self::Trpc => "trpc",
            Self::Deepagents => "deepagents",
            Self::Saa => "saa",
            Self::Agentskills => "agentskills",
        }
    }

    /// Its tools in display order, with their names.
    pub fn tools(self) -> &'static [(Tool, &'static str)] {
        match self {
            Self::Skillbox => &[
                (Tool::List, "skill_list"),
                (Tool::Load, "skill_load"),
                (Tool::Unload, "skill_unload"),
                (Tool::ListDocs, "skill_list_docs"),
                (Tool::SelectDocs, "skill_select_docs"),
                (Tool::Read, "skill_read"),
                (Tool::Run, "skill_run"),
                (Tool::Search, "skill_search"),
                (Tool::Disable, "skill_disable"),
                (Tool::Enable, "skill_enable"),
            ],
            Self::Trpc => &[
                (Tool::Load, "skill_load"),
                (Tool::SelectDocs, "skill_select_docs"),
                (Tool::ListDocs, "skill_list_docs"),
                (Tool::Run, "skill_run"),
            ],
            Self::Deepagents => &[(Tool::Load, "load_skill")],
            Self::Saa => &[
                (Tool::Load, "read_skill"),
                (Tool::Search, "search_skills"),
                (Tool::Disable, "disable_skill"),
            ],
            Self::Agentskills => &[],
        }
    }

    /// The name of a tool in this dialect, if the dialect has it.
    pub fn tool_name(self, tool: Tool) -> Option<&'static str> {
        self.tools()
            .iter()
            .find(|(candidate, _)| *candidate == tool)
            .map(|(_, name)| *name)
    }

    /// Finds a tool by its name in this dialect.
    pub fn find_tool(self, name: &str) -> Option<Tool> {
        self.tools()
            .iter()
            .find(|(_, candidate)| *candidate == name)
            .map(|(tool, _)| *tool)
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Dialect {
    type Err = DialectError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.iter().copied().find(|dialect| dialect.as_str() == text);
        found.ok_or_else(|| DialectError(text.chars().take(80).collect()))
    }
}
