//! Agents of a session: the main one and those it starts.

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skillbox_model::SkillName;

/// The name under which an agent keeps what it has loaded.
///
/// Invariants: 1 to 128 characters, no control character.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct AgentName(Box<str>);

/// Why a text is not an agent's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an agent's name: 1 to 128 characters without control characters are taken")]
pub struct AgentNameError(pub String);

impl AgentName {
    /// Parses the name and keeps it exactly.
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

    /// Whether this is the agent that a session has without being told of one.
    pub fn is_main(&self) -> bool {
        &*self.0 == MAIN
    }
}

const MAIN: &str = "main";

impl Default for AgentName {
    fn default() -> Self {
        Self(MAIN.into())
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

/// What a sub-agent has loaded when it starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Inheritance {
    /// Nothing; what the two load stays apart.
    #[default]
    Isolated,
    /// What its parent has loaded at that moment; from then on the two are apart.
    Inherit,
}

/// Which skills an agent can see at all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkillFilter {
    /// Every skill of the session.
    #[default]
    All,
    /// These alone; with none named, the agent has no skills.
    Only(BTreeSet<SkillName>),
}

impl SkillFilter {
    /// Whether the skill is visible.
    pub fn shows(&self, skill: &SkillName) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.contains(skill),
        }
    }
}

/// An agent at the start of its turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentStart {
    /// The agent.
    pub agent: AgentName,
    /// The agent that started it, and what comes over from there.
    pub parent: Option<(AgentName, Inheritance)>,
    /// What it can see.
    pub filter: SkillFilter,
}

impl AgentStart {
    /// The main agent of a session.
    pub fn main() -> Self {
        Self::default()
    }

    /// An agent that another one starts.
    pub fn below(parent: AgentName, agent: AgentName, inheritance: Inheritance) -> Self {
        Self {
            agent,
            parent: Some((parent, inheritance)),
            filter: SkillFilter::All,
        }
    }

    /// The same agent, limited to some skills.
    pub fn seeing(mut self, filter: SkillFilter) -> Self {
        self.filter = filter;
        self
    }
}
