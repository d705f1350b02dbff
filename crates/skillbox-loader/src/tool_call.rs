//! Dispatches a tool call to the operation behind it.

use serde::Serialize;
use serde_json::{Value, json};
use skillbox_model::{RunRequest, SkillName};

use crate::call_arguments::CallArguments;
use crate::call_context::{CallContext, OperationOutcome};
use crate::delta::StateDelta;
use crate::dialect::{Dialect, render_state_changes};
use crate::hooks::MatchedHook;
use crate::loader_error::LoaderError;
use crate::settings::ForkedSkills;
use crate::tool::Tool;
use crate::tool_interface::{
    DeepagentsSkillInput, ListInput, LoadInput, ReadInput, SaaReadInput, SaaSkillInput, SearchInput, SelectDocsInput,
    SkillInput,
};

/// The reply to a tool call.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolCallReply {
    /// The call is complete.
    Done {
        /// The outcome of the operation.
        outcome: OperationOutcome<Value>,
        /// Hooks that the call fired, for the caller to run.
        hooks: Vec<MatchedHook>,
    },
    /// The caller must run the request: it is valid, and the skill may run.
    Run(Box<RunRequest>),
    /// The caller must load the skill in a session of its own: the skill may be loaded and asks for that.
    Fork(Box<ForkRequest>),
}

/// A skill that asks for a session of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkRequest {
    /// The skill.
    pub skill: SkillName,
    /// The agent that should run it.
    pub agent: Option<String>,
    /// The model that it asks for.
    pub model: Option<String>,
}

impl CallContext<'_> {
    /// Calls a tool by its name in the dialect.
    pub fn call(&self, name: &str, arguments: &Value) -> Result<ToolCallReply, LoaderError> {
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
                Ok(ToolCallReply::Run(Box::new(request)))
            }
            Tool::List => self.complete(tool, self.list(&arguments.parse::<ListInput>()?)?),
            Tool::Load => {
                let input = self.load_input(&arguments)?;
                if let Some(request) = self.fork_request(&input)? {
                    return Ok(ToolCallReply::Fork(Box::new(request)));
                }
                let outcome = self.load(&input)?;
                let hooks = outcome.result.hooks.clone();
                self.complete_with_hooks(tool, outcome, hooks)
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

    fn complete<T: Serialize>(&self, tool: Tool, outcome: OperationOutcome<T>) -> Result<ToolCallReply, LoaderError> {
        self.complete_with_hooks(tool, outcome, Vec::new())
    }

    /// Converts the result to the form that the dialect's hosts expect: in two dialects, an object whose `content` is
    /// the text for the model; in the others, the result itself. A tool that can change the state adds `state_delta`.
    fn complete_with_hooks<T: Serialize>(
        &self,
        tool: Tool,
        outcome: OperationOutcome<T>,
        hooks: Vec<MatchedHook>,
    ) -> Result<ToolCallReply, LoaderError> {
        let mut result = match self.settings.dialect {
            Dialect::Deepagents | Dialect::Saa => text_result(&outcome.text, &json!(outcome.result)),
            _ => json!(outcome.result),
        };
        if let (Value::Object(result), false) = (&mut result, tool.is_read_only()) {
            result.insert("state_delta".to_owned(), self.render_delta(&outcome.delta));
        }
        Ok(ToolCallReply::Done {
            outcome: outcome.map(|_| result),
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
                Value::Object(render_state_changes(dialect, self.state, &after, self.agent))
            }
        }
    }

    fn load_input(&self, arguments: &CallArguments<'_>) -> Result<LoadInput, LoaderError> {
        let by_name = |skill: String, arguments: Option<String>| LoadInput {
            skill,
            arguments,
            ..LoadInput::default()
        };
        match self.settings.dialect {
            Dialect::Deepagents => {
                let DeepagentsSkillInput { skill_name, args } = arguments.parse()?;
                Ok(by_name(skill_name, args))
            }
            Dialect::Saa => {
                let SaaReadInput {
                    skill_name,
                    skill_path,
                    arguments,
                } = arguments.parse()?;
                let skill = SaaSkillInput { skill_name, skill_path };
                Ok(by_name(self.resolve_skill_name(&skill)?, arguments))
            }
            _ => arguments.parse(),
        }
    }

    /// The request for a session of its own, if the skill asks for one and the host has not loaded it here already.
    fn fork_request(&self, input: &LoadInput) -> Result<Option<ForkRequest>, LoaderError> {
        let skill = self.find_skill(&input.skill)?;
        let loads_here = self.settings.forked_skills == ForkedSkills::SameSession;
        if loads_here || !skill.is_forked() || self.state.is_loaded(self.agent, &skill.name) {
            return Ok(None);
        }
        self.check_caller(skill)?;
        let invocation = skill.invocation.as_deref();
        Ok(Some(ForkRequest {
            skill: skill.name.clone(),
            agent: invocation.and_then(|invocation| invocation.agent.as_deref().map(str::to_owned)),
            model: skill.model().map(str::to_owned),
        }))
    }

    fn disable_input(&self, arguments: &CallArguments<'_>) -> Result<SkillInput, LoaderError> {
        match self.settings.dialect {
            Dialect::Saa => Ok(SkillInput {
                skill: self.resolve_skill_name(&arguments.parse::<SaaSkillInput>()?)?,
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
        if self.state.host_tools.definitions.contains_key(name) {
            return LoaderError::HostToolCalled(name.to_owned());
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
    for key in ["model", "context", "agent", "hooks", "evicted"] {
        if let Some(value) = result.get(key) {
            reduced[key] = value.clone();
        }
    }
    reduced
}
