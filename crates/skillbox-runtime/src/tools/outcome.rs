//! What a call gives: the result, the change of the state, the hooks.

use serde_json::{Map, Value, json};
use skillbox_loader::{Dialect, StateDelta};
use skillbox_model::RunReport;

use super::hook_outcome::HookOutcome;

/// The answer to one call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutcome {
    /// The result, for programs.
    pub result: Value,
    /// The same for the model, in the words of the dialect.
    pub text: String,
    /// What it changed.
    pub delta: StateDelta,
    /// The same as the dialect's hosts keep it: the keys whose values changed, null for those that are gone.
    pub keys: Map<String, Value>,
    /// The hooks whose moment came with the call, and what became of them.
    pub hooks: Vec<HookOutcome>,
    /// The dialect in which the answer is given.
    pub dialect: Dialect,
    /// What `result` was made of, where the call was a run.
    pub report: Option<Box<RunReport>>,
}

impl ToolOutcome {
    /// The answer as one JSON value: the result, and where that is an object, `state_delta` and `hooks` in it.
    ///
    /// `state_delta` is a list of operations in our own dialect, and an object of keys in those whose hosts keep
    /// such.
    pub fn to_json(&self) -> Value {
        self.completed(self.result.clone())
    }

    /// The same, where nothing else of it is needed any more.
    pub fn into_json(mut self) -> Value {
        let result = self.result.take();
        self.completed(result)
    }

    fn completed(&self, mut result: Value) -> Value {
        if let Value::Object(result) = &mut result {
            result.insert("state_delta".to_owned(), self.state_delta());
            if !self.hooks.is_empty() {
                result.insert("hooks".to_owned(), json!(self.hooks));
            }
        }
        result
    }

    /// The change of the state in the form that the dialect's hosts take.
    pub fn state_delta(&self) -> Value {
        match self.dialect {
            Dialect::Skillbox | Dialect::Agentskills => json!(self.delta),
            Dialect::Trpc | Dialect::Deepagents | Dialect::Saa => Value::Object(self.keys.clone()),
        }
    }
}
