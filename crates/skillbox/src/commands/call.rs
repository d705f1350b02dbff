//! `skillbox call`: makes one tool call and prints its JSON result.

use std::io::Read;

use clap::{Args, ValueEnum};
use serde_json::Value;
use skillbox_executor::{CancelToken, EventSink};
use skillbox_model::{ErrorBody, ErrorCode, ExitCode};
use skillbox_runtime::{Caller, ToolCall, ToolOutcome};
use skillbox_sandbox::{Spawner, SpawnerOptions};

use super::agent_session::{AgentArgs, tool_failure};
use super::isolation_warning;
use crate::context::Context;
use crate::failure::Failure;
use crate::interrupt;
use crate::render::{Span, Terminal, Tone};
use crate::runtime_setup;
use crate::settings::{AgentFlags, HostFlags, TrustFlags};

/// Make one tool call and print its JSON result
#[derive(Args, Debug)]
#[command(after_help = concat!(
    "Besides the tools of the dialect, a host can call `before_agent` when a turn starts, `wrap_tool_call` to check \
     whether one of its own tools may be called, `after_tool_call` afterwards, `fire_event` for the events of hooks that \
     skillbox does not see, and `return_result` in the session of a forked skill. `register_tools` registers its own \
     tools, which `skillbox tools` lists once a skill that needs them is loaded.\n\n",
    crate::examples!(
    "skillbox call skill_load '{\"skill\": \"csv-report\"}' --session s1",
    "skillbox call skill_run @request.json --session s1",
    "skillbox call wrap_tool_call --session s1 --policy restrict \\",
    "    '{\"tool\": \"Bash\", \"arguments\": {\"command\": \"git status\"}}'",
    "skillbox call fire_event '{\"event\": \"Stop\"}' --session s1",
    "echo '{\"skill_name\": \"csv-report\"}' | skillbox call load_skill - \\",
    "    --dialect deepagents",
    )
))]
pub struct CallArgs {
    /// Name of the tool in the dialect
    tool: String,
    /// Arguments as JSON, @FILE, or - for standard input; default {}
    #[arg(value_name = "JSON|@FILE|-")]
    arguments: Option<String>,
    /// Who makes the call; some skills can be loaded by the user only
    #[arg(long, value_enum, value_name = "WHO", default_value_t)]
    caller: CallerArg,
    #[command(flatten)]
    agent: AgentArgs,
    #[command(flatten)]
    settings: AgentFlags,
    #[command(flatten)]
    host: HostFlags,
    #[command(flatten)]
    pub(super) trust: TrustFlags,
}

#[derive(ValueEnum, Clone, Copy, Debug, Default)]
enum CallerArg {
    #[default]
    Model,
    User,
}

/// The maximum size of the arguments.
const MAX_ARGUMENT_BYTES: u64 = 64 << 20;

/// Prints JSON on stdout, even for a failure.
pub fn run(args: &CallArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    // The spawner is forked first, while the process is small and has one thread.
    let spawner = runtime_setup::fork_spawner(SpawnerOptions::for_single_run());
    match call_tool(args, spawner, context, terminal) {
        Ok(outcome) => {
            terminal.print_json(&outcome.to_json())?;
            isolation_warning::print_if_result_is_weaker(&outcome.result, terminal)?;
            print_hooks(&outcome, terminal)?;
            Ok(ExitCode::OK)
        }
        Err(failure) => Ok(failure.print(terminal, true)?),
    }
}

fn call_tool(
    args: &CallArgs,
    spawner: Result<Spawner, Failure>,
    context: &Context<'_>,
    terminal: &mut Terminal,
) -> Result<ToolOutcome, Failure> {
    let (settings, _) = args.settings.resolve(context.layers)?;
    let (host, _) = args.host.resolve(context.layers)?;
    let call = ToolCall {
        tool: args.tool.clone(),
        arguments: parse_arguments(args.arguments.as_deref())?,
        agent: args.agent.agent_name()?,
        caller: match args.caller {
            CallerArg::Model => Caller::Model,
            CallerArg::User => Caller::User,
        },
    };
    let spawner = match spawner {
        Ok(spawner) => Some(spawner),
        // Only `skill_run` needs the sandbox.
        Err(failure) if call.tool == "skill_run" => return Err(failure),
        Err(_) => None,
    };
    isolation_warning::print_if_unconfined(host.allow_unconfined, isolation_warning::CALLERS, terminal)?;
    let runtime = runtime_setup::open_runtime(context, &host, spawner, terminal)?;
    let session = args.agent.open_session(settings, runtime, context)?;
    let cancel = CancelToken::new().map_err(|error| Failure::from_error(ErrorCode::Internal, &error))?;
    interrupt::cancel_on_signal(&cancel);
    let outcome = session.call_with(&call, EventSink::silent(), Some(&cancel));
    outcome.map_err(|error| tool_failure(&error, &session))
}

fn parse_arguments(given: Option<&str>) -> Result<Value, Failure> {
    let text = match given {
        None => return Ok(Value::Null),
        Some("-") => read_text("standard input", std::io::stdin().lock())?,
        Some(text) => match text.strip_prefix('@') {
            Some(path) => {
                let file = std::fs::File::open(path)
                    .map_err(|error| invalid_arguments(format!("cannot open {path}: {error}")))?;
                read_text(path, file)?
            }
            None => text.to_owned(),
        },
    };
    serde_json::from_str(&text).map_err(|error| invalid_arguments(format!("the arguments are not JSON: {error}")))
}

fn read_text(name: &str, from: impl Read) -> Result<String, Failure> {
    let mut text = String::new();
    let count = from.take(MAX_ARGUMENT_BYTES + 1).read_to_string(&mut text);
    let count = count.map_err(|error| invalid_arguments(format!("cannot read {name}: {error}")))?;
    if count as u64 > MAX_ARGUMENT_BYTES {
        return Err(invalid_arguments(format!(
            "{name} is larger than {MAX_ARGUMENT_BYTES} bytes"
        )));
    }
    Ok(text)
}

fn invalid_arguments(message: String) -> Failure {
    Failure::from_body(ErrorBody::new(ErrorCode::InvalidRequest, message))
}

/// Prints the hooks on stderr if the result is a list, which has no field for them.
fn print_hooks(outcome: &ToolOutcome, terminal: &mut Terminal) -> Result<(), Failure> {
    if outcome.result.is_object() {
        return Ok(());
    }
    for hook in &outcome.hooks {
        let text = serde_json::to_string(hook).unwrap_or_default();
        let mut page = terminal.page();
        page.labelled(0, Span::new(Tone::Warning, "hook:"), 6, Tone::Plain, &text);
        terminal.print_message(page)?;
    }
    Ok(())
}
