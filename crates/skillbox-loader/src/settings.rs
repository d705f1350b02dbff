//! The settings of a session.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::Inheritance;
use crate::dialect::Dialect;
use crate::policy::{PolicyKind, default_always_allowed};
use crate::prompt_template::PromptTemplate;
use crate::source_view::SourceView;
use crate::state::LoadMode;
use crate::tool::Tool;

/// The maximum number of loaded skills, in dialects that limit it.
const DEFAULT_MAX_LOADED: usize = 10;

/// How a session presents skills and limits their use. The settings of a session do not change.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Tool names, parameters and texts.
    pub dialect: Dialect,
    /// How `allowed-tools` is enforced.
    pub policy: PolicyKind,
    /// Tools that no policy blocks. A given set replaces the default, even if it is empty.
    pub always_allowed: BTreeSet<String>,
    /// Maximum length in characters of the list of skills in a prompt.
    pub max_list_chars: usize,
    /// How many skills an agent may have loaded at once; by default, the dialect decides.
    pub max_loaded: Option<usize>,
    /// What happens when an agent loads one more.
    pub at_limit: AtLimit,
    /// How long a skill stays loaded; by default, the dialect decides.
    pub load_mode: Option<LoadMode>,
    /// Where the text of a loaded skill appears; by default, the dialect decides.
    pub delivery: Option<Delivery>,
    /// Where a skill with `context: fork` is loaded.
    pub forked_skills: ForkedSkills,
    /// What sub-agents inherit if the host does not say it when they start.
    pub subagent_inherit: Inheritance,
    /// Whether a skill must be loaded before it runs.
    pub require_loaded: bool,
    /// The tools that the host offers. Tools that the dialect lacks are ignored.
    pub registered_tools: BTreeSet<Tool>,
    /// The sources of skills, lowest priority first, for dialects that list them.
    pub sources: Vec<SourceView>,
    /// The text around the list of skills in the prompt section.
    pub prompt_frame: PromptFrame,
    /// The host's own text on how to load skills, in place of the dialect's.
    pub load_instructions: Option<String>,
    /// Which path of a skill prompts show; by default, the one that the dialect's tools can use.
    pub shown_paths: Option<ShownPaths>,
    /// Maximum bytes shown of one document; a tool can read the rest.
    pub max_bytes_per_doc: usize,
    /// Maximum bytes shown of all documents of one skill.
    pub max_doc_bytes_per_skill: usize,
}

impl Settings {
    /// The defaults of a dialect.
    pub fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            policy: PolicyKind::default(),
            always_allowed: default_always_allowed(),
            max_list_chars: 16_000,
            max_loaded: None,
            at_limit: AtLimit::default(),
            load_mode: None,
            delivery: None,
            forked_skills: ForkedSkills::default(),
            subagent_inherit: Inheritance::default(),
            require_loaded: false,
            registered_tools: Tool::ALL.iter().copied().collect(),
            sources: Vec::new(),
            prompt_frame: PromptFrame::default(),
            load_instructions: None,
            shown_paths: None,
            max_bytes_per_doc: 256 << 10,
            max_doc_bytes_per_skill: 1 << 20,
        }
    }

    /// How many skills an agent may have loaded at once; `None` if their number is not limited.
    pub fn load_limit(&self) -> Option<usize> {
        self.max_loaded.or(match self.dialect {
            // Spring AI Alibaba does not limit reads, and the text of a read skill is not repeated in prompts.
            Dialect::Saa => None,
            Dialect::Skillbox | Dialect::Trpc | Dialect::Deepagents | Dialect::Agentskills => Some(DEFAULT_MAX_LOADED),
        })
    }

    /// How long a skill stays loaded.
    pub fn load_mode(&self) -> LoadMode {
        self.load_mode.unwrap_or(match self.dialect {
            // trpc-agent-go stores its keys under `temp:`, which is valid for the turn.
            Dialect::Trpc => LoadMode::Turn,
            Dialect::Skillbox | Dialect::Deepagents | Dialect::Saa | Dialect::Agentskills => LoadMode::Session,
        })
    }

    /// Where the text of a loaded skill appears.
    pub fn delivery(&self) -> Delivery {
        self.delivery.unwrap_or(match self.dialect {
            Dialect::Skillbox | Dialect::Trpc => Delivery::Both,
            Dialect::Deepagents | Dialect::Saa => Delivery::Result,
            Dialect::Agentskills => Delivery::Prompt,
        })
    }

    /// Which path of a skill prompts show.
    pub fn shown_paths(&self) -> ShownPaths {
        self.shown_paths.unwrap_or(match self.dialect {
            Dialect::Skillbox | Dialect::Trpc => ShownPaths::Workspace,
            // The hosts of these dialects read a skill's files with tools of their own.
            Dialect::Deepagents | Dialect::Saa | Dialect::Agentskills => ShownPaths::Catalog,
        })
    }

    /// The name of a tool, if the dialect has it and the host registers it.
    pub fn tool_name(&self, tool: Tool) -> Option<&'static str> {
        self.dialect
            .tool_name(tool)
            .filter(|_| self.registered_tools.contains(&tool))
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::new(Dialect::default())
    }
}

/// What happens when an agent at the load limit loads another skill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AtLimit {
    /// The call is refused.
    #[default]
    Refuse,
    /// The least recently used skill is unloaded.
    EvictLeastRecent,
}

/// Where a skill with `context: fork` is loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForkedSkills {
    /// In a session of its own, which the caller creates. The state of the agent that loads it does not change.
    #[default]
    OwnSession,
    /// In no session, for callers that cannot use another one: they get the text. The state does not change either.
    NoSession,
    /// In the session of the agent that loads it, like any other skill.
    SameSession,
}

/// Where the text of a loaded skill appears.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// In the prompt section; the tool result only says so.
    Prompt,
    /// In the tool result; the prompt only marks the skill as loaded.
    Result,
    /// In both.
    Both,
}

impl Delivery {
    /// Whether the prompt section contains the text.
    pub fn in_prompt(self) -> bool {
        self != Self::Result
    }

    /// Whether the tool result contains the text.
    pub fn in_result(self) -> bool {
        self != Self::Prompt
    }
}

/// Which path of a skill prompts show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShownPaths {
    /// `/workspace/skills/<name>`, where the skill's scripts run.
    Workspace,
    /// The path in the catalog, for hosts with file tools of their own.
    Catalog,
}

/// The text around the list of skills in the prompt section.
#[derive(Clone, Debug, Default)]
pub enum PromptFrame {
    /// The dialect's own text.
    #[default]
    Dialect,
    /// The host's template.
    Template(PromptTemplate),
    /// No prompt section at all; tools and state work as usual.
    Absent,
}
