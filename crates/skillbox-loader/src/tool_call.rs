//! Dispatches a tool call to the operation behind it.

use serde::Serialize;
use serde_json::{Value, json};
use skillbox_model::RunRequest;

use crate::call_arguments::CallArguments;
use crate::delta::StateDelta;
use crate::dialect::{Dialect, changed_keys};
use crate::engine::{Answer, Engine};
use crate::hooks::FiredHook;
use crate::loader_error::LoaderError;
use crate::tool::Tool;
use crate::tool_interface::{
    ListInput, LoadInput, ReadInput, SearchInput, SelectDocsInput, SkillInput, SkillNameInput, SkillNameOrPath,
};

/// The reply to a tool call.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The call is complete.
    Done {
        /// The answer.
        answer: Answer<Value>,
        /// Hooks that the call fired, for the caller to run.
        hooks: Vec<FiredHook>,
    },
    /// The caller must run the request: it is valid, and the skill may run.
    Run(Box<RunRequest>),
}

impl Engine<'_> {
    /// Calls a tool by its name in the dialect.
    pub fn call(&self, name: &str, arguments: &Value) -> Result<Reply, LoaderError> {
        let tool = self.find_tool(name)?;
        let tool_name = self.settings.tool_name(tool).unwrap_or_default();
        let arguments = CallArguments {
            tool: tool_name,
            value: arguments,
        };
        match tool {
            Tool::Run => {
                let request: RunRequest = arguments.parse()?;
                self.check_run(&request.skill)?;
                Ok(Reply::Run(Box::new(request)))
            }
            Tool::List => self.complete(tool, self.list(&arguments.parse::<ListInput>()?)?),
            Tool::Load => {
                let answer = self.load(&self.load_input(&arguments)?)?;
                let hooks = answer.result.hooks.clone();
                self.complete_with_hooks(tool, answer, hooks)
            }
            Tool::Unload => self.complete(tool, self.unload(&arguments.parse::<SkillInput>()?)?),
            Tool::ListDocs => self.complete(tool, self.list_docs(&arguments.parse::<SkillInput>()?)?),
            Tool::SelectDocs => self.complete(tool, self.select_docs(&arguments.parse::<SelectDocsInput>()?)?),
            Tool::Read => self.complete(tool, self.read(&arguments.parse::<ReadInput>()?)?),
            Tool::Search => self.complete(tool, self.search(&arguments.parse::<SearchInput>()?)?),
            Tool::Disable => self.complete(tool, self.disable(&self.disable_input(&arguments)?)?),
            Tool::Enable => self.complete(tool, self.enable(&arguments.parse::<SkillInput>()?)?),
        }
    }

    /// Finds a tool by its name in the dialect. The error names the tools that exist.
    pub(crate) fn find_tool(&self, name: &str) -> Result<Tool, LoaderError> {
        let tool = self.settings.dialect.find_tool(name);
        tool.filter(|tool| self.settings.registered_tools.contains(tool))
            .ok_or_else(|| self.unknown_tool(name))
    }

    fn complete<T: Serialize>(&self, tool: Tool, answer: Answer<T>) -> Result<Reply, LoaderError> {
        self.complete_with_hooks(tool, answer, Vec::new())
    }

    /// Puts the result into the form that the dialect's hosts expect: a text in two dialects, an object in the others.
    /// A tool that can change the state reports its delta.
    fn complete_with_hooks<T: Serialize>(
        &self,
        tool: Tool,
        answer: Answer<T>,
        hooks: Vec<FiredHook>,
    ) -> Result<Reply, LoaderError> {
        let mut result = match self.settings.dialect {
            Dialect::Deepagents | Dialect::Saa => text_result(&answer.text, &json!(answer.result)),
            _ => json!(answer.result),
        };
        if let (Value::Object(result), false) = (&mut result, tool.is_read_only()) {
            result.insert("state_delta".to_owned(), self.render_delta(&answer.delta));
        }
        Ok(Reply::Done {
            answer: answer.map(|_| result),
            hooks,
        })
    }

    /// Hosts of our own dialect get the operations; others get the changes under their own state keys.
    fn render_delta(&self, delta: &StateDelta) -> Value {
        match self.settings.dialect {
            Dialect::Skillbox | Dialect::Agentskills => json!(delta),
            dialect => {
                let mut after = self.state.clone();
                after.apply(delta);
                Value::Object(changed_keys(dialect, self.state, &after, self.agent))
            }
        }
    }

    fn load_input(&self, arguments: &CallArguments<'_>) -> Result<LoadInput, LoaderError> {
        let by_name = |skill: String| LoadInput {
            skill,
            ..LoadInput::default()
        };
        match self.settings.dialect {
            Dialect::Deepagents => Ok(by_name(arguments.parse::<SkillNameInput>()?.skill_name)),
            Dialect::Saa => Ok(by_name(
                self.resolve_skill_name(&arguments.parse::<SkillNameOrPath>()?)?,
            )),
            _ => arguments.parse(),
        }
    }

    fn disable_input(&self, arguments: &CallArguments<'_>) -> Result<SkillInput, LoaderError> {
        match self.settings.dialect {
            Dialect::Saa => Ok(SkillInput {
                skill: self.resolve_skill_name(&arguments.parse::<SkillNameOrPath>()?)?,
            }),
            _ => arguments.parse(),
        }
    }

    fn unknown_tool(&self, name: &str) -> LoaderError {
        if self.state.visible_skill(self.agent, name).is_some() {
            return LoaderError::SkillCalledAsTool {
                skill: name.to_owned(),
                load_tool: self.settings.tool_name(Tool::Load),
            };
        }
        let tools = self.settings.dialect.tools().iter();
        let registered = tools.filter(|(tool, _)| self.settings.registered_tools.contains(tool));
        LoaderError::UnknownTool {
            tool: name.to_owned(),
            available: registered.map(|(_, name)| *name).collect(),
        }
    }
}

/// Builds a result from the text for the model and the fields that only a host can act on.
fn text_result(text: &str, result: &Value) -> Value {
    let mut reduced = json!({"content": text});
    for key in ["model", "context", "hooks", "evicted"] {
        if let Some(value) = result.get(key) {
            reduced[key] = value.clone();
        }
    }
    reduced
}
