//! How a host wants skills disclosed.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dialect::Dialect;
use crate::policy::{PolicyKind, default_always_allowed};
use crate::prompt::{PromptTemplate, SourceView};
use crate::state::LoadMode;
use crate::tools::Tool;

/// Settings of a session, made once by the host.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Names, parameters and texts.
    pub dialect: Dialect,
    /// What `allowed-tools` means.
    pub policy: PolicyKind,
    /// Tools that no policy blocks. A given set replaces the default, an empty one included.
    pub always_allowed: BTreeSet<String>,
    /// Characters of the list of skills in a prompt.
    pub description_budget: usize,
    /// Skills that one agent may have loaded at once.
    pub max_loaded: usize,
    /// What happens to one more.
    pub at_limit: AtLimit,
    /// How long a loaded skill stays.
    pub load_mode: LoadMode,
    /// Where the words of a loaded skill go; without it, where the dialect puts them.
    pub delivery: Option<Delivery>,
    /// Whether a skill must be loaded before it runs.
    pub require_loaded: bool,
    /// The tools that are really there, as far as the dialect has them.
    pub registered: BTreeSet<Tool>,
    /// Where skills come from, lowest priority first, for dialects that say so.
    pub sources: Vec<SourceView>,
    /// The frame of the prompt section.
    pub prompt: PromptFrame,
    /// Which path of a skill prompts show; without it, the one the dialect's tools can use.
    pub shown_paths: Option<ShownPaths>,
    /// Bytes of one document that are shown; the rest is read with a tool.
    pub max_doc_bytes: usize,
    /// Bytes of all documents of one skill that are shown.
    pub max_docs_bytes: usize,
}

impl Settings {
    /// The defaults of a dialect.
    pub fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            policy: PolicyKind::default(),
            always_allowed: default_always_allowed(),
            description_budget: 16_000,
            max_loaded: 10,
            at_limit: AtLimit::default(),
            load_mode: LoadMode::default(),
            delivery: None,
            require_loaded: false,
            registered: Tool::ALL.iter().copied().collect(),
            sources: Vec::new(),
            prompt: PromptFrame::default(),
            shown_paths: None,
            max_doc_bytes: 256 << 10,
            max_docs_bytes: 1 << 20,
        }
    }

    /// Where the words of a loaded skill go.
    pub fn delivery(&self) -> Delivery {
        self.delivery.unwrap_or_else(|| self.dialect.delivery())
    }

    /// Which path of a skill prompts show.
    pub fn shown_paths(&self) -> ShownPaths {
        self.shown_paths.unwrap_or_else(|| self.dialect.shown_paths())
    }

    /// The name of a tool, if the dialect has it and the host registered it.
    pub fn tool_name(&self, tool: Tool) -> Option<&'static str> {
        self.dialect.tool_name(tool).filter(|_| self.registered.contains(&tool))
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::new(Dialect::default())
    }
}

/// What happens to a skill that would be one too many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AtLimit {
    /// It is refused.
    #[default]
    Refuse,
    /// The one that was used least recently makes room.
    EvictLeastRecent,
}

/// Where the words of a loaded skill go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// Into the prompt section; the tool's result only says so.
    Prompt,
    /// Into the tool's result; the prompt only marks the skill.
    Result,
    /// Into both.
    Both,
}

impl Delivery {
    /// Whether the prompt section carries them.
    pub fn in_prompt(self) -> bool {
        self != Self::Result
    }

    /// Whether the tool's result carries them.
    pub fn in_result(self) -> bool {
        self != Self::Prompt
    }
}

/// Which path of a skill prompts show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShownPaths {
    /// `/workspace/skills/<name>`, where its scripts run.
    Workspace,
    /// Where the catalogue found it, for hosts with file tools of their own.
    Catalog,
}

/// The frame of the prompt section.
#[derive(Clone, Debug, Default)]
pub enum PromptFrame {
    /// The dialect's own.
    #[default]
    Dialect,
    /// The host's.
    Template(PromptTemplate),
    /// No section at all; tools and state work as ever.
    Absent,
}
