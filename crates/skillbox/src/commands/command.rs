//! The commands and their dispatch.

use clap::Subcommand;
use skillbox_model::ExitCode;

use super::output::print_output;
use super::{
    artifacts, call, completions, config, create, demo, docker, doctor, help, info, list, man, mcp, profiles, prompt,
    read_properties, run, search, serve, session, to_prompt, tools, validate,
};
use crate::context::Context;
use crate::failure::Failure;
use crate::render::Terminal;

/// Every command, in the order of the help.
#[derive(Subcommand, Debug)]
pub enum Command {
    Demo(demo::DemoArgs),
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
    Info(info::InfoArgs),
    Search(search::SearchArgs),
    Create(create::CreateArgs),
    Validate(validate::ValidateArgs),
    ReadProperties(read_properties::ReadPropertiesArgs),
    ToPrompt(to_prompt::ToPromptArgs),
    Prompt(prompt::PromptArgs),
    Tools(tools::ToolsArgs),
    Call(Box<call::CallArgs>),
    Run(Box<run::RunArgs>),
    Mcp(Box<mcp::McpArgs>),
    Serve(Box<serve::ServeArgs>),
    Session(session::SessionArgs),
    Artifacts(artifacts::ArtifactsArgs),
    Profiles(profiles::ProfilesArgs),
    Config(config::ConfigArgs),
    Doctor(doctor::DoctorArgs),
    Docker(docker::DockerArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
    Help(help::HelpArgs),
}

impl Command {
    /// Whether failures are printed as JSON even without `--json`.
    pub fn always_prints_json(&self) -> bool {
        matches!(self, Self::Call(_) | Self::Tools(_))
    }

    /// Whether the command is `run`, whose lower exit codes are those of the script.
    pub fn is_run(&self) -> bool {
        matches!(self, Self::Run(_))
    }

    /// Whether the command starts logging itself, because it also exports traces.
    pub fn starts_logging_itself(&self) -> bool {
        matches!(self, Self::Serve(_))
    }
}

/// Runs a command and returns its exit code.
pub fn dispatch(command: &Command, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    match command {
        Command::Demo(_) => return demo::run(context, terminal),
        Command::List(args) => return print_output(&list::run(args, context, terminal), context, terminal),
        Command::Info(args) => return print_output(&info::run(args, context, terminal)?, context, terminal),
        Command::Search(args) => return print_output(&search::run(args, context, terminal), context, terminal),
        Command::Create(args) => return print_output(&create::run(args)?, context, terminal),
        Command::Validate(args) => return validate::run(args, context, terminal),
        Command::ReadProperties(args) => return read_properties::run(args, context, terminal),
        Command::ToPrompt(args) => return to_prompt::run(args, context, terminal),
        Command::Prompt(args) => return prompt::run(args, context, terminal),
        Command::Tools(args) => return tools::run(args, context, terminal),
        Command::Call(args) => return call::run(args, context, terminal),
        Command::Run(args) => return run::run(args, context, terminal),
        Command::Mcp(args) => return mcp::run(args, context, terminal),
        Command::Serve(args) => return serve::run(args, context, terminal),
        Command::Session(args) => return session::run(args, context, terminal),
        Command::Artifacts(args) => return artifacts::run(args, context, terminal),
        Command::Profiles(args) => return profiles::run(args, context, terminal),
        Command::Config(args) => return config::run(args, context, terminal),
        Command::Doctor(args) => return print_output(&doctor::run(args, context, terminal)?, context, terminal),
        Command::Docker(args) => return docker::run(args, context, terminal),
        Command::Completions(args) => completions::run(args, context, terminal)?,
        Command::Man(args) => man::run(args, context, terminal)?,
        Command::Help(args) => help::run(args, context, terminal)?,
    }
    Ok(ExitCode::OK)
}
