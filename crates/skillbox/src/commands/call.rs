//! `skillbox call`: one tool call, its JSON result on stdout.

use std::io::Read;

use clap::{Args, ValueEnum};
use serde_json::Value;
use skillbox_executor::{Cancel, EventSink};
use skillbox_model::{ErrorBody, ErrorCode, ExitCode};
use skillbox_runtime::{Caller, ToolCall, ToolOutcome};
use skillbox_sandbox::{Spawner, SpawnerOptions};

use super::Context;
use super::agent::{AgentArgs, refused};
use crate::engine;
use crate::failure::Failure;
use crate::interrupt;
use crate::render::{Span, Terminal, Tone};
use crate::settings::{AgentFlags, HostFlags};

/// Make one tool call and print its JSON result
#[derive(Args, Debug)]
#[command(after_help = concat!(
    "Besides the tools of the dialect, a host in any language can call `before_agent` when a turn starts, \
     `wrap_tool_call` to ask whether a tool of its own may be called now, and `after_tool_call` when it was.\n\n",
    crate::examples!(
    "skillbox call skill_load '{\"skill\": \"csv-report\"}' --session s1",
    "skillbox call skill_run @request.json --session s1",
    "skillbox call wrap_tool_call --session s1 --policy restrict \\",
    "    '{\"tool\": \"Bash\", \"arguments\": {\"command\": \"git status\"}}'",
    "echo '{\"skill_name\": \"csv-report\"}' | skillbox call load_skill - \\",
    "    --dialect deepagents",
    )
))]
pub struct CallArgs {
    /// The tool's name in the dialect
    tool: String,
    /// Its arguments: JSON, @FILE, or - for standard input; none is an empty object
    #[arg(value_name = "JSON|@FILE|-")]
    arguments: Option<String>,
    /// On whose behalf; some skills may be loaded by the user only
    #[arg(long, value_enum, value_name = "WHO", default_value_t)]
    caller: Who,
    #[command(flatten)]
    agent: AgentArgs,
    #[command(flatten)]
    settings: AgentFlags,
    #[command(flatten)]
    host: HostFlags,
}

#[derive(ValueEnum, Clone, Copy, Debug, Default)]
enum Who {
    #[default]
    Model,
    User,
}

/// Arguments longer than this are a mistake.
const LONGEST_ARGUMENTS: u64 = 64 << 20;

/// Whatever comes of it, stdout is JSON.
pub fn run(args: &CallArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    // The spawner is forked off before anything else exists.
    let spawner = engine::spawner(SpawnerOptions::one_shot());
    match make(args, spawner, context, terminal) {
        Ok(outcome) => {
            terminal.json(&outcome.to_json())?;
            tell_hooks(&outcome, terminal)?;
            Ok(ExitCode::OK)
        }
        Err(failure) => match failure.tell(terminal, true)? {
            // The exit code of a refused run is that of `skillbox run` alone.
            ExitCode::REFUSED => Ok(ExitCode::BAD),
            code => Ok(code),
        },
    }
}

fn make(
    args: &CallArgs,
    spawner: Result<Spawner, Failure>,
    context: &Context<'_>,
    terminal: &mut Terminal,
) -> Result<ToolOutcome, Failure> {
    let (settings, _) = args.settings.resolve(context.layers)?;
    let (host, _) = args.host.resolve(context.layers)?;
    let call = ToolCall {
        tool: args.tool.clone(),
        arguments: arguments(args.arguments.as_deref())?,
        agent: args.agent.agent()?,
        caller: match args.caller {
            Who::Model => Caller::Model,
            Who::User => Caller::User,
        },
    };
    let spawner = match spawner {
        Ok(spawner) => Some(spawner),
        // Only this tool cannot do without; the others need no sandbox.
        Err(failure) if call.tool == "skill_run" => return Err(failure),
        Err(_) => None,
    };
    let runtime = engine::open(context, &host, &[], spawner, terminal)?;
    let session = args.agent.open(settings, runtime, context)?;
    let cancel = Cancel::new().map_err(|error| Failure::from_error(ErrorCode::Internal, &error))?;
    interrupt::cancel_on_signal(&cancel);
    let outcome = session.call_with(&call, EventSink::silent(), Some(&cancel));
    outcome.map_err(|error| refused(&error, &session))
}

fn arguments(given: Option<&str>) -> Result<Value, Failure> {
    let text = match given {
        None => return Ok(Value::Null),
        Some("-") => read("standard input", std::io::stdin().lock())?,
        Some(text) => match text.strip_prefix('@') {
            Some(path) => {
                let file =
                    std::fs::File::open(path).map_err(|error| unusable(format!("cannot open {path}: {error}")))?;
                read(path, file)?
            }
            None => text.to_owned(),
        },
    };
    serde_json::from_str(&text).map_err(|error| unusable(format!("the arguments are not JSON: {error}")))
}

fn read(name: &str, from: impl Read) -> Result<String, Failure> {
    let mut text = String::new();
    let count = from.take(LONGEST_ARGUMENTS + 1).read_to_string(&mut text);
    let count = count.map_err(|error| unusable(format!("cannot read {name}: {error}")))?;
    if count as u64 > LONGEST_ARGUMENTS {
        return Err(unusable(format!("{name} has more than {LONGEST_ARGUMENTS} bytes")));
    }
    Ok(text)
}

fn unusable(message: String) -> Failure {
    Failure::from_body(ErrorBody::new(ErrorCode::InvalidRequest, message))
}

/// A result that is a list has no room for hooks, and none of them may be lost.
fn tell_hooks(outcome: &ToolOutcome, terminal: &mut Terminal) -> Result<(), Failure> {
    if outcome.result.is_object() {
        return Ok(());
    }
    for hook in &outcome.hooks {
        let text = serde_json::to_string(hook).unwrap_or_default();
        let mut page = terminal.page();
        page.beside(0, Span::new(Tone::Warning, "hook:"), 6, Tone::Plain, &text);
        terminal.tell(page)?;
    }
    Ok(())
}
