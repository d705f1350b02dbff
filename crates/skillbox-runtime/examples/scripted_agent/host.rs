//! The host of an agent: a loop of prompt, model and tool call.

use std::error::Error;
use std::sync::Arc;

use serde_json::{Value, json};
use skillbox_executor::{CancelToken, EventSink};
use skillbox_model::{RelPath, RunRequest};
use skillbox_runtime::{
    AgentName, AgentOptions, AgentSession, AgentSpec, Dialect, HistoryCompleteness, RunContext, Runtime, ToolCall,
};

use super::model::{ModelAction, ScriptedModel};

/// A host with one session, and two tools of its own for dialects that rely on the host's tools.
pub struct Host {
    runtime: Arc<Runtime>,
    session: AgentSession,
}

/// The input of a model call.
pub struct ModelInput<'s> {
    pub prompt: &'s str,
    pub tools: &'s [String],
    pub answers: &'s [Step],
    pub last_answer: Option<&'s str>,
}

/// One tool call and its answer.
pub struct Step {
    pub tool: String,
    pub arguments: Value,
    pub answer: String,
}

/// A finished task.
pub struct FinishedTask {
    pub steps: Vec<Step>,
    pub answer: String,
    /// The skills section of the last model call.
    pub prompt: String,
}

const MAX_STEPS: usize = 8;
const HOST_TOOLS: [&str; 2] = ["read_file", "Bash"];

impl ModelInput<'_> {
    pub fn has_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool == name)
    }

    /// The system prompt and the conversation.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.prompt).chain(self.answers.iter().map(|step| step.answer.as_str()))
    }

    pub fn contains(&self, words: &str) -> bool {
        self.texts().any(|text| text.contains(words))
    }
}

impl Host {
    pub fn new(runtime: Arc<Runtime>, dialect: Dialect) -> Result<Self, Box<dyn Error>> {
        let session = AgentSession::open(runtime.clone(), AgentOptions::new(dialect))?;
        Ok(Self { runtime, session })
    }

    /// Runs one turn, up to the model's answer.
    pub fn run_turn(&self, model: &mut ScriptedModel) -> Result<FinishedTask, Box<dyn Error>> {
        let agent = AgentName::default();
        self.session.before_agent(&AgentSpec::main())?;
        let mut steps: Vec<Step> = Vec::new();
        while steps.len() < MAX_STEPS {
            let section = self.session.modify_request(&agent, HistoryCompleteness::Complete)?;
            let prompt = section.map(|section| section.text).unwrap_or_default();
            let skillbox_tools = self.session.tools(&agent)?.into_iter().map(|tool| tool.name);
            let tools: Vec<String> = skillbox_tools.chain(HOST_TOOLS.map(str::to_owned)).collect();
            let input = ModelInput {
                prompt: &prompt,
                tools: &tools,
                answers: &steps,
                last_answer: steps.last().map(|step| step.answer.as_str()),
            };
            match model.next(&input)? {
                ModelAction::Answer(answer) => return Ok(FinishedTask { steps, answer, prompt }),
                ModelAction::Call { tool, arguments } => {
                    let answer = self.call(&agent, tool, &arguments)?;
                    let tool = tool.to_owned();
                    steps.push(Step {
                        tool,
                        arguments,
                        answer,
                    });
                }
            }
        }
        Err("the model exceeds the maximum of steps".into())
    }

    /// Calls a tool of skillbox through the session, or a tool of the host with the session's consent.
    fn call(&self, agent: &AgentName, tool: &str, arguments: &Value) -> Result<String, Box<dyn Error>> {
        if !HOST_TOOLS.contains(&tool) {
            return Ok(self.session.call(&ToolCall::new(tool, arguments.clone()))?.text);
        }
        self.session.wrap_tool_call(agent, tool, arguments)?;
        let answer = match tool {
            "read_file" => self.read_file(arguments)?,
            _ => self.bash(arguments)?,
        };
        self.session.after_tool_call(agent, tool, arguments, &json!(answer))?;
        Ok(answer)
    }

    /// Reads a file of a skill by the path in the prompt.
    fn read_file(&self, arguments: &Value) -> Result<String, Box<dyn Error>> {
        let path = arguments["file_path"].as_str().ok_or("file_path is missing")?;
        for entry in self.runtime.catalog().skills() {
            let below = entry
                .dir()
                .to_str()
                .and_then(|dir| path.strip_prefix(dir)?.strip_prefix('/'));
            if let Some(below) = below {
                let bytes = entry.open()?.read_file(&RelPath::parse_user_input(below)?, 1 << 20)?;
                return Ok(String::from_utf8(bytes)?);
            }
        }
        Err(format!("{path} is not a file of a skill").into())
    }

    /// Runs a shell command in the sandbox.
    fn bash(&self, arguments: &Value) -> Result<String, Box<dyn Error>> {
        let request: RunRequest = serde_json::from_value(arguments.clone())?;
        let context = RunContext {
            session: None,
            events: EventSink::silent(),
            cancel: CancelToken::new()?,
            export: None,
            origin: Default::default(),
            keep_files: false,
        };
        Ok(serde_json::to_string(&self.runtime.run(&request, context)?)?)
    }
}
