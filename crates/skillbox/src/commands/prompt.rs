//! `skillbox prompt`: the section for an agent's system prompt.

use clap::Args;
use serde::Serialize;
use skillbox_model::{ErrorCode, ExitCode};
use skillbox_runtime::{
    AgentName, AgentSession, Dialect, HistoryCompleteness, LoadInput, LoaderError, StateDelta, ToolError,
};

use super::agent_session::{AgentArgs, tool_failure};
use crate::context::Context;
use crate::failure::Failure;
use crate::render::Terminal;
use crate::runtime_setup;
use crate::settings::{AgentFlags, HostFlags};

/// Print the system prompt section for an agent
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox prompt                           at the start of a session",
    "skillbox prompt --loaded csv-report       with a skill loaded",
    "skillbox prompt --dialect deepagents --budget 4000",
    "skillbox prompt --session s1 --json       with its size in characters",
))]
pub struct PromptArgs {
    /// Render this skill as loaded, without loading it; repeatable
    #[arg(long, value_name = "NAME")]
    loaded: Vec<String>,
    #[command(flatten)]
    agent: AgentArgs,
    #[command(flatten)]
    settings: AgentFlags,
}

#[derive(Serialize)]
struct PromptSection {
    dialect: Dialect,
    /// Empty if there is nothing to disclose.
    prompt: String,
    characters: usize,
    loaded: Vec<String>,
    /// The model that the loaded skills ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// State changes made by rendering: skills that were loaded for one prompt only are unloaded.
    state_delta: StateDelta,
}

pub fn run(args: &PromptArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let (settings, _) = args.settings.resolve(context.layers)?;
    let (host, _) = HostFlags::default().resolve(context.layers)?;
    let runtime = runtime_setup::open_runtime(context, &host, None, terminal)?;
    let agent = args.agent.agent_name()?;
    let mut session = args.agent.open_session(settings, runtime, context)?;
    if !args.loaded.is_empty() {
        session = with_loaded(&session, &args.loaded, &agent)?;
    }
    let section = render_section(&session, &agent)?;
    if context.as_json {
        terminal.print_json(&section)?;
    } else {
        terminal.write_stdout(section.prompt.as_bytes())?;
        if !section.prompt.is_empty() && !section.prompt.ends_with('\n') {
            terminal.write_stdout(b"\n")?;
        }
    }
    Ok(ExitCode::OK)
}

/// A copy of the session in memory, with more skills loaded; the stored session does not change.
fn with_loaded(session: &AgentSession, names: &[String], agent: &AgentName) -> Result<AgentSession, Failure> {
    let session = session
        .in_memory_copy()
        .map_err(|error| tool_failure(&error, session))?;
    for name in names {
        let input = LoadInput {
            skill: name.clone(),
            ..LoadInput::default()
        };
        session.load_for_host(agent, &input).map_err(|error| {
            let mut body = error.body(session.settings().dialect).with_field("loaded");
            let has_reason = matches!(
                &error,
                ToolError::Refused(LoaderError::UnknownSkill {
                    not_loaded: Some(_),
                    ..
                })
            );
            if body.code == ErrorCode::UnknownSkill && !has_reason {
                body.hint = Some("run `skillbox list` for all skills".to_owned());
            }
            Failure::from_body(body)
        })?;
    }
    Ok(session)
}

fn render_section(session: &AgentSession, agent: &AgentName) -> Result<PromptSection, Failure> {
    let failure = |error| tool_failure(&error, session);
    let state = session.state().map_err(failure)?;
    let loaded = state.loaded(agent).map(|loaded| loaded.skill.to_string()).collect();
    let section = session
        .modify_request(agent, HistoryCompleteness::Complete)
        .map_err(failure)?;
    let (prompt, state_delta) = section.map(|section| (section.text, section.delta)).unwrap_or_default();
    Ok(PromptSection {
        dialect: session.settings().dialect,
        characters: prompt.chars().count(),
        prompt,
        loaded,
        model: state.requested_model(agent).map(str::to_owned),
        state_delta,
    })
}
