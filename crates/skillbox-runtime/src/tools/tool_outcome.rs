//! The outcome of a call: its result, the change of the state and the hooks.

use serde_json::{Map, Value, json};
use skillbox_loader::{AgentName, Dialect, SkillsState, StateDelta, render_state_changes};
use skillbox_model::RunReport;

use super::hook_outcome::HookOutcome;

/// The outcome of one call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutcome {
    /// The result, for programs.
    pub result: Value,
    /// The result as text for the model, as the dialect words it.
    pub text: String,
    /// The change of the state.
    pub delta: StateDelta,
    /// The change in the form that hosts of the dialect store: the state keys that changed, with null for removed keys.
    pub changed_keys: Map<String, Value>,
    /// The hooks that the call fired, with their status.
    pub hooks: Vec<HookOutcome>,
    /// The dialect of the answer.
    pub dialect: Dialect,
    /// The report behind `result`, if the call was a run.
    pub report: Option<Box<RunReport>>,
    /// Whether the agent sees other tools of the host than before the call.
    pub changes_host_tools: bool,
}

impl ToolOutcome {
    /// An outcome that changes nothing.
    pub(super) fn new(dialect: Dialect, result: Value, text: impl Into<String>) -> Self {
        Self {
            result,
            text: text.into(),
            delta: StateDelta::default(),
            changed_keys: Map::new(),
            hooks: Vec::new(),
            dialect,
            report: None,
            changes_host_tools: false,
        }
    }

    /// Adds the change of the state, with the keys that it changes for an agent.
    pub(super) fn with_change(
        self,
        delta: StateDelta,
        before: &SkillsState,
        after: &SkillsState,
        agent: &AgentName,
    ) -> Self {
        Self {
            delta,
            changed_keys: render_state_changes(self.dialect, before, after, agent),
            changes_host_tools: before.visible_host_tools(agent) != after.visible_host_tools(agent),
            ..self
        }
    }

    /// Adds the hooks.
    pub(super) fn with_hooks(self, hooks: Vec<HookOutcome>) -> Self {
        Self { hooks, ..self }
    }

    /// Adds the report of a run.
    pub(super) fn with_report(self, report: Option<Box<RunReport>>) -> Self {
        Self { report, ..self }
    }

    /// The outcome as one JSON value: the result, to which `state_delta` and `hooks` are added if it is an object.
    ///
    /// `state_delta` is a list of operations in the dialect `skillbox`, and an object of keys in dialects whose hosts store
    /// keys.
    pub fn to_json(&self) -> Value {
        self.with_state_and_hooks(self.result.clone())
    }

    /// Like [`to_json`](Self::to_json), without a copy of the result.
    pub fn into_json(mut self) -> Value {
        let result = self.result.take();
        self.with_state_and_hooks(result)
    }

    fn with_state_and_hooks(&self, mut result: Value) -> Value {
        if let Value::Object(result) = &mut result {
            result.insert("state_delta".to_owned(), self.state_delta());
            if !self.hooks.is_empty() {
                result.insert("hooks".to_owned(), json!(self.hooks));
            }
        }
        result
    }

    /// The change of the state in the form that hosts of the dialect store.
    pub fn state_delta(&self) -> Value {
        match self.dialect {
            Dialect::Skillbox | Dialect::Agentskills => json!(self.delta),
            Dialect::Trpc | Dialect::Deepagents | Dialect::Saa => Value::Object(self.changed_keys.clone()),
        }
    }
}
