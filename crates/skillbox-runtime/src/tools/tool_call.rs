//! A tool call as a model or a host makes it.

use serde_json::Value;
use skillbox_loader::{AgentName, Caller};

use super::hook_run::HookContext;

/// One call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The tool's name in the dialect of the session, or the name of a [`HostVerb`].
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
    /// The agent that makes the call.
    pub agent: AgentName,
    /// Whether the model or the user asks for it.
    pub caller: Caller,
}

impl ToolCall {
    /// A call of the main agent's model.
    pub fn new(tool: impl Into<String>, arguments: Value) -> Self {
        Self {
            tool: tool.into(),
            arguments,
            agent: AgentName::default(),
            caller: Caller::default(),
        }
    }

    /// What hooks learn about the call; `response` is its result once there is one.
    pub(super) fn hook_context<'c>(&'c self, response: Option<&'c Value>) -> HookContext<'c> {
        HookContext {
            agent: &self.agent,
            tool: Some((&self.tool, &self.arguments)),
            response,
        }
    }
}

/// Methods of a session that a host in any language can call by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostVerb {
    /// Starts a turn.
    BeforeAgent,
    /// Asks whether a tool may be called now.
    WrapToolCall,
    /// Reports a call that was made.
    AfterToolCall,
}

impl HostVerb {
    /// Every verb.
    pub const ALL: &'static [Self] = &[Self::BeforeAgent, Self::WrapToolCall, Self::AfterToolCall];

    /// The name to call it by.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BeforeAgent => "before_agent",
            Self::WrapToolCall => "wrap_tool_call",
            Self::AfterToolCall => "after_tool_call",
        }
    }

    /// The verb with this name.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|verb| verb.as_str() == name)
    }
}
