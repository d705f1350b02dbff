//! `skillbox tools`: the tool definitions for a model.

use clap::{Args, ValueEnum};
use serde_json::Value;
use skillbox_model::ExitCode;
use skillbox_runtime::ToolFormat;

use super::agent_session::{AgentArgs, tool_failure};
use crate::context::Context;
use crate::failure::Failure;
use crate::render::Terminal;
use crate::runtime_setup;
use crate::settings::{AgentFlags, HostFlags};

/// Print the tool definitions as JSON
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox tools                            for an MCP client",
    "skillbox tools --format openai            for the OpenAI API",
    "skillbox tools --dialect deepagents --format anthropic",
))]
pub struct ToolsArgs {
    /// Format of the definitions
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
    #[command(flatten)]
    agent: AgentArgs,
    #[command(flatten)]
    settings: AgentFlags,
}

#[derive(ValueEnum, Clone, Copy, Debug, Default)]
enum Format {
    #[default]
    Mcp,
    Openai,
    Anthropic,
}

pub fn run(args: &ToolsArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let (settings, _) = args.settings.resolve(context.layers)?;
    let (host, _) = HostFlags::default().resolve(context.layers)?;
    let runtime = runtime_setup::open_runtime(context, &host, None, terminal)?;
    let session = args.agent.open_session(settings, runtime, context)?;
    let tools = session
        .tools(&args.agent.agent_name()?)
        .map_err(|error| tool_failure(&error, &session))?;
    let format = match args.format {
        Format::Mcp => ToolFormat::Mcp,
        Format::Openai => ToolFormat::OpenAi,
        Format::Anthropic => ToolFormat::Anthropic,
    };
    let definitions: Vec<Value> = tools.iter().map(|tool| tool.to_format(format)).collect();
    terminal.print_json(&definitions)?;
    Ok(ExitCode::OK)
}
