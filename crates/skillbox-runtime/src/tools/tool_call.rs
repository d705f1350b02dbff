//! A tool call as a model or a host makes it.

use serde_json::Value;
use skillbox_loader::{AgentName, Caller};

use super::run_hooks::HookContext;

/// One call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The tool's name in the dialect of the session, or the name of a [`HostMethod`].
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
    /// The agent that makes the call.
    pub agent: AgentName,
    /// Whether the model or the user makes the call.
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

    /// The data that hooks receive about the call; `response` is its result after the call.
    pub(super) fn hook_context<'c>(&'c self, response: Option<&'c Value>) -> HookContext<'c> {
        HookContext {
            tool: Some((&self.tool, &self.arguments)),
            response,
            ..HookContext::of_agent(&self.agent)
        }
    }
}

/// Methods of a session that a host in any language can call by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostMethod {
    /// Starts a turn.
    BeforeAgent,
    /// Checks whether a tool may be called now.
    WrapToolCall,
    /// Reports a call that was made.
    AfterToolCall,
    /// Registers tools of the host.
    RegisterTools,
    /// Reports an event that skillbox does not see.
    FireEvent,
    /// Returns the result of a fork to its parent.
    ReturnResult,
}

impl HostMethod {
    /// Every method.
    pub const ALL: &'static [Self] = &[
        Self::BeforeAgent,
        Self::WrapToolCall,
        Self::AfterToolCall,
        Self::RegisterTools,
        Self::FireEvent,
        Self::ReturnResult,
    ];

    /// The name by which a host calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BeforeAgent => "before_agent",
            Self::WrapToolCall => "wrap_tool_call",
            Self::AfterToolCall => "after_tool_call",
            Self::RegisterTools => "register_tools",
            Self::FireEvent => "fire_event",
            Self::ReturnResult => "return_result",
        }
    }

    /// The method with this name.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|method| method.as_str() == name)
    }
}
