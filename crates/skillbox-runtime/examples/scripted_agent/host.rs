//! The host of an agent: prompt, model, tool, again.

use std::error::Error;
use std::sync::Arc;

use serde_json::{Value, json};
use skillbox_executor::{Cancel, EventSink};
use skillbox_model::{RelPath, RunRequest};
use skillbox_runtime::{
    AgentName, AgentOptions, AgentSession, AgentStart, Dialect, History, RunContext, Runtime, ToolCall,
};

use super::model::{Move, ScriptedModel};

/// A host with one session, and two tools of its own for the dialects that rely on such.
pub struct Host {
    runtime: Arc<Runtime>,
    session: AgentSession,
}

/// What the model sees.
pub struct Shown<'s> {
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

/// A task that was done.
pub struct Ended {
    pub steps: Vec<Step>,
    pub answer: String,
    /// The section of the last model call.
    pub prompt: String,
}

const MOST_STEPS: usize = 8;
const OWN_TOOLS: [&str; 2] = ["read_file", "Bash"];

impl Shown<'_> {
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

    /// One turn of the user, up to the model's answer.
    pub fn work_on(&self, model: &mut ScriptedModel) -> Result<Ended, Box<dyn Error>> {
        let agent = AgentName::default();
        self.session.before_agent(&AgentStart::main())?;
        let mut steps: Vec<Step> = Vec::new();
        while steps.len() < MOST_STEPS {
            let section = self.session.modify_request(&agent, History::Whole)?;
            let prompt = section.map(|section| section.text).unwrap_or_default();
            let ours = self.session.tools(&agent)?.into_iter().map(|tool| tool.name);
            let tools: Vec<String> = ours.chain(OWN_TOOLS.map(str::to_owned)).collect();
            let shown = Shown {
                prompt: &prompt,
                tools: &tools,
                answers: &steps,
                last_answer: steps.last().map(|step| step.answer.as_str()),
            };
            match model.next(&shown)? {
                Move::Say(answer) => return Ok(Ended { steps, answer, prompt }),
                Move::Call { tool, arguments } => {
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
        Err("the model does not come to an end".into())
    }

    /// Our tools go through the session; around its own, the host asks it.
    fn call(&self, agent: &AgentName, tool: &str, arguments: &Value) -> Result<String, Box<dyn Error>> {
        if !OWN_TOOLS.contains(&tool) {
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

    /// Reads a file of a skill by the path that prompts show.
    fn read_file(&self, arguments: &Value) -> Result<String, Box<dyn Error>> {
        let path = arguments["file_path"].as_str().ok_or("file_path is missing")?;
        for entry in self.runtime.catalog().skills() {
            let below = entry
                .dir()
                .to_str()
                .and_then(|dir| path.strip_prefix(dir)?.strip_prefix('/'));
            if let Some(below) = below {
                let bytes = entry.open()?.read(&RelPath::parse_typed(below)?, 1 << 20)?;
                return Ok(String::from_utf8(bytes)?);
            }
        }
        Err(format!("{path} is no file of a skill").into())
    }

    /// A shell whose commands run in the sandbox, like everything that comes from a skill.
    fn bash(&self, arguments: &Value) -> Result<String, Box<dyn Error>> {
        let request: RunRequest = serde_json::from_value(arguments.clone())?;
        let context = RunContext {
            session: None,
            events: EventSink::silent(),
            cancel: Cancel::new()?,
            export: None,
        };
        Ok(serde_json::to_string(&self.runtime.run(&request, context)?)?)
    }
}
