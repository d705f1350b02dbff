//! The agents of a session: the main agent and its sub-agents.

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skillbox_model::SkillName;

/// The name of an agent, under which the state stores its loaded skills.
///
/// Invariants: 1 to 128 characters, no control characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct AgentName(Box<str>);

/// A text that is not a valid agent name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a valid agent name: expected 1 to 128 characters without control characters")]
pub struct AgentNameError(pub String);

impl AgentName {
    /// Parses a name without changing it.
    pub fn parse(text: impl Into<String>) -> Result<Self, AgentNameError> {
        let text = text.into();
        let length = text.chars().count();
        if length == 0 || length > 128 || text.chars().any(char::is_control) {
            return Err(AgentNameError(text.chars().take(128).collect()));
        }
        Ok(Self(text.into_boxed_str()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the main agent, which every session has.
    pub fn is_main(&self) -> bool {
        &*self.0 == MAIN_AGENT
    }
}

const MAIN_AGENT: &str = "main";

impl Default for AgentName {
    fn default() -> Self {
        Self(MAIN_AGENT.into())
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for AgentName {
    type Error = AgentNameError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(text)
    }
}

impl From<AgentName> for String {
    fn from(name: AgentName) -> Self {
        name.0.into()
    }
}

/// Which skills a sub-agent has loaded when it starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Inheritance {
    /// None. Parent and sub-agent load skills independently.
    #[default]
    Isolated,
    /// Those that its parent has loaded at that moment. From then on, the two load skills independently.
    Inherit,
}

/// Which skills an agent can see.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkillFilter {
    /// Every skill of the session.
    #[default]
    All,
    /// Only these; with an empty set, the agent has no skills.
    Only(BTreeSet<SkillName>),
}

impl SkillFilter {
    /// Whether the filter includes the skill.
    pub fn includes(&self, skill: &SkillName) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.contains(skill),
        }
    }
}

/// The agent whose turn starts: its name, its parent, and the skills that it can see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentSpec {
    /// The agent.
    pub agent: AgentName,
    /// The agent that started it, and what it inherits from that agent.
    pub parent: Option<(AgentName, Inheritance)>,
    /// The skills that it can see.
    pub filter: SkillFilter,
}

impl AgentSpec {
    /// The main agent of a session.
    pub fn main() -> Self {
        Self::default()
    }

    /// A sub-agent that `parent` starts.
    pub fn sub_agent(parent: AgentName, agent: AgentName, inheritance: Inheritance) -> Self {
        Self {
            agent,
            parent: Some((parent, inheritance)),
            filter: SkillFilter::All,
        }
    }

    /// The same agent, limited to the skills of a filter.
    pub fn with_filter(mut self, filter: SkillFilter) -> Self {
        self.filter = filter;
        self
    }
}
