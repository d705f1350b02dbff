//! From a tool's name and arguments to the operation behind it.

use serde::Serialize;
use serde_json::{Value, json};
use skillbox_model::RunRequest;

use crate::call_arguments::CallArguments;
use crate::delta::StateDelta;
use crate::dialect::{Dialect, changed_keys};
use crate::engine::{Answer, Engine};
use crate::loader_error::LoaderError;
use crate::tools::{
    ListInput, LoadInput, NamedSkill, ReadInput, SearchInput, SelectDocsInput, SkillInput, SkillPointer, Tool,
};

/// What a call comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// It is done.
    Done(Answer<Value>),
    /// Something is to be run, by whoever can: the request is complete, and the skill may run.
    Run(Box<RunRequest>),
}

impl Engine<'_> {
    /// Calls a tool by the name that the dialect gives it.
    pub fn call(&self, name: &str, arguments: &Value) -> Result<Reply, LoaderError> {
        let tool = self.tool(name)?;
        let shown = self.settings.tool_name(tool).unwrap_or_default();
        let arguments = CallArguments {
            tool: shown,
            value: arguments,
        };
        match tool {
            Tool::Run => {
                let request: RunRequest = arguments.parse()?;
                self.may_run(&request.skill)?;
                Ok(Reply::Run(Box::new(request)))
            }
            Tool::List => self.done(tool, self.list(&arguments.parse::<ListInput>()?)?),
            Tool::Load => self.done(tool, self.load(&self.load_input(&arguments)?)?),
            Tool::Unload => self.done(tool, self.unload(&arguments.parse::<SkillInput>()?)?),
            Tool::ListDocs => self.done(tool, self.list_docs(&arguments.parse::<SkillInput>()?)?),
            Tool::SelectDocs => self.done(tool, self.select_docs(&arguments.parse::<SelectDocsInput>()?)?),
            Tool::Read => self.done(tool, self.read(&arguments.parse::<ReadInput>()?)?),
            Tool::Search => self.done(tool, self.search(&arguments.parse::<SearchInput>()?)?),
            Tool::Disable => self.done(tool, self.disable(&self.disable_input(&arguments)?)?),
            Tool::Enable => self.done(tool, self.enable(&arguments.parse::<SkillInput>()?)?),
        }
    }

    /// The tool of that name; what is none is told what there is.
    pub(crate) fn tool(&self, name: &str) -> Result<Tool, LoaderError> {
        let tool = self.settings.dialect.tool(name);
        tool.filter(|tool| self.settings.registered.contains(tool))
            .ok_or_else(|| self.unknown_tool(name))
    }

    /// What the dialect's hosts take is a text in two of them, and an object in ours. A tool that can change the
    /// state says what it changed.
    fn done<T: Serialize>(&self, tool: Tool, answer: Answer<T>) -> Result<Reply, LoaderError> {
        let mut result = match self.settings.dialect {
            Dialect::Deepagents | Dialect::Saa => with_host_part(&answer.text, &json!(answer.result)),
            _ => json!(answer.result),
        };
        if let (Value::Object(result), false) = (&mut result, tool.is_read_only()) {
            result.insert("state_delta".to_owned(), self.shown_delta(&answer.delta));
        }
        Ok(Reply::Done(answer.map(|_| result)))
    }

    /// Our own hosts get the operations; others get what they would find under their own keys.
    fn shown_delta(&self, delta: &StateDelta) -> Value {
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
            Dialect::Deepagents => Ok(by_name(arguments.parse::<NamedSkill>()?.skill_name)),
            Dialect::Saa => Ok(by_name(self.pointed_name(&arguments.parse::<SkillPointer>()?)?)),
            _ => arguments.parse(),
        }
    }

    fn disable_input(&self, arguments: &CallArguments<'_>) -> Result<SkillInput, LoaderError> {
        match self.settings.dialect {
            Dialect::Saa => Ok(SkillInput {
                skill: self.pointed_name(&arguments.parse::<SkillPointer>()?)?,
            }),
            _ => arguments.parse(),
        }
    }

    fn unknown_tool(&self, name: &str) -> LoaderError {
        if self.state.visible_skill(self.agent, name).is_some() {
            return LoaderError::SkillIsNoTool {
                skill: name.to_owned(),
                load: self.settings.tool_name(Tool::Load),
            };
        }
        let tools = self.settings.dialect.tools().iter();
        let registered = tools.filter(|(tool, _)| self.settings.registered.contains(tool));
        LoaderError::UnknownTool {
            tool: name.to_owned(),
            known: registered.map(|(_, name)| *name).collect(),
        }
    }
}

/// The text for the model, and beside it what only a host can do something about.
fn with_host_part(text: &str, whole: &Value) -> Value {
    let mut result = json!({"content": text});
    for key in ["model", "context", "hooks", "evicted"] {
        if let Some(value) = whole.get(key) {
            result[key] = value.clone();
        }
    }
    result
}
