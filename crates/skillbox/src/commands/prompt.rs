//! `skillbox prompt`: the section that an agent's system prompt would get.

use clap::Args;
use serde::Serialize;
use skillbox_model::{ErrorCode, ExitCode};
use skillbox_runtime::{AgentName, AgentSession, Dialect, History, LoadInput, StateDelta};

use super::Context;
use super::agent::{AgentArgs, refused};
use crate::engine;
use crate::failure::Failure;
use crate::render::Terminal;
use crate::settings::{AgentFlags, HostFlags};

/// Print the system-prompt section that an agent would be given
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox prompt                           what an agent is told first",
    "skillbox prompt --loaded csv-report       as if that skill were loaded",
    "skillbox prompt --dialect deepagents --budget 4000",
    "skillbox prompt --session s1 --json       with its size in characters",
))]
pub struct PromptArgs {
    /// Show this skill as loaded, without loading it; may be repeated
    #[arg(long, value_name = "NAME")]
    loaded: Vec<String>,
    #[command(flatten)]
    agent: AgentArgs,
    #[command(flatten)]
    settings: AgentFlags,
}

#[derive(Serialize)]
struct Section {
    dialect: Dialect,
    /// Empty where there is nothing to say.
    prompt: String,
    characters: usize,
    loaded: Vec<String>,
    /// What showing it changed: skills that were loaded for one prompt are gone.
    state_delta: StateDelta,
}

pub fn run(args: &PromptArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let (settings, _) = args.settings.resolve(context.layers)?;
    let (host, _) = HostFlags::default().resolve(context.layers)?;
    let runtime = engine::open(context, &host, &[], None, terminal)?;
    let agent = args.agent.agent()?;
    let mut session = args.agent.open(settings, runtime, context)?;
    if !args.loaded.is_empty() {
        session = with_loaded(&session, &args.loaded, &agent)?;
    }
    let section = section(&session, &agent)?;
    if context.as_json {
        terminal.json(&section)?;
    } else {
        terminal.exact_out(section.prompt.as_bytes())?;
        if !section.prompt.is_empty() && !section.prompt.ends_with('\n') {
            terminal.exact_out(b"\n")?;
        }
    }
    Ok(ExitCode::OK)
}

/// The same session with more skills loaded, of which it never hears.
fn with_loaded(session: &AgentSession, names: &[String], agent: &AgentName) -> Result<AgentSession, Failure> {
    let session = session.detached().map_err(|error| refused(&error, session))?;
    for name in names {
        let input = LoadInput {
            skill: name.clone(),
            ..LoadInput::default()
        };
        session.load_for_user(agent, &input).map_err(|error| {
            let mut body = error.body(session.settings().dialect).in_field("loaded");
            if body.code == ErrorCode::UnknownSkill {
                body.hint = Some("`skillbox list` names every skill".to_owned());
            }
            Failure::from_body(body)
        })?;
    }
    Ok(session)
}

fn section(session: &AgentSession, agent: &AgentName) -> Result<Section, Failure> {
    let told = |error| refused(&error, session);
    let loaded = session
        .state()
        .map_err(told)?
        .loaded(agent)
        .map(|loaded| loaded.skill.to_string())
        .collect();
    let section = session.modify_request(agent, History::Whole).map_err(told)?;
    let (prompt, state_delta) = section.map(|section| (section.text, section.delta)).unwrap_or_default();
    Ok(Section {
        dialect: session.settings().dialect,
        characters: prompt.chars().count(),
        prompt,
        loaded,
        state_delta,
    })
}
