//! The five dialects as data.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::settings::{Delivery, ShownPaths};
use crate::tools::Tool;

/// A set of tool names, parameters, texts and state keys over the one engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// Ours: every tool.
    #[default]
    Skillbox,
    /// trpc-agent-go: load, select documents, list them, run.
    Trpc,
    /// deepagents: one tool to load, the rest by the host's file tools.
    Deepagents,
    /// Spring AI Alibaba: read, search, disable.
    Saa,
    /// The reference of the Agent Skills format: a list in XML, no tools.
    Agentskills,
}

/// A text that names no dialect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no dialect: skillbox, trpc, deepagents, saa or agentskills is expected")]
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

    /// The word on the wire and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Skillbox => "skillbox",
            Self::Trpc => "trpc",
            Self::Deepagents => "deepagents",
            Self::Saa => "saa",
            Self::Agentskills => "agentskills",
        }
    }

    /// Its tools in the order in which they are shown, with their names.
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

    /// What the dialect calls a tool, if it has it.
    pub fn tool_name(self, tool: Tool) -> Option<&'static str> {
        self.tools()
            .iter()
            .find(|(known, _)| *known == tool)
            .map(|(_, name)| *name)
    }

    /// The tool of that name, if the dialect has it.
    pub fn tool(self, name: &str) -> Option<Tool> {
        self.tools()
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(tool, _)| *tool)
    }

    pub(crate) fn delivery(self) -> Delivery {
        match self {
            Self::Skillbox | Self::Trpc => Delivery::Both,
            Self::Deepagents | Self::Saa => Delivery::Result,
            Self::Agentskills => Delivery::Prompt,
        }
    }

    pub(crate) fn shown_paths(self) -> ShownPaths {
        match self {
            Self::Skillbox | Self::Trpc => ShownPaths::Workspace,
            // Their hosts read a skill's files with tools of their own.
            Self::Deepagents | Self::Saa | Self::Agentskills => ShownPaths::Catalog,
        }
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
