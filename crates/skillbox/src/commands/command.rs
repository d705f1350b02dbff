//! The list of commands, and the way from a command line to its verb.

use std::cell::Cell;

use clap::Subcommand;
use skillbox_model::ExitCode;
use skillbox_sandbox::Spawner;

use super::{
    artifacts, call, completions, config, create, demo, docker, doctor, help, info, list, man, mcp, profiles, prompt,
    read_properties, run, search, serve, session, show, to_prompt, tools, validate,
};
use crate::failure::Failure;
use crate::render::{Terminal, Verbosity};
use crate::settings::{GlobalSettings, Layers, Told};

/// What to do, in the order of the help.
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
    /// Whether failures too are told as JSON, asked for or not.
    pub fn always_speaks_json(&self) -> bool {
        matches!(self, Self::Call(_) | Self::Tools(_))
    }

    /// Whether the lower exit codes are a script's own.
    pub fn is_run(&self) -> bool {
        matches!(self, Self::Run(_))
    }

    /// Whether the log has more to it than lines, which only the command knows.
    pub fn starts_its_own_log(&self) -> bool {
        matches!(self, Self::Serve(_))
    }
}

/// What every command may need to know, resolved before it starts.
pub struct Context<'a> {
    /// The settings in force.
    pub settings: &'a GlobalSettings,
    /// The same, each with its origin.
    pub told_settings: &'a [Told],
    /// Environment and config file.
    pub layers: &'a Layers,
    /// Whether a program reads the answer.
    pub as_json: bool,
    /// How much is told on stderr.
    pub verbosity: Verbosity,
    /// The spawner of a run, where one was forked off at the start.
    pub spawner: Cell<Option<Spawner>>,
}

/// Runs a command and gives the exit code.
pub fn dispatch(command: &Command, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    match command {
        Command::Demo(_) => return demo::run(context, terminal),
        Command::List(args) => return show(&list::run(args, context, terminal), context, terminal),
        Command::Info(args) => return show(&info::run(args, context, terminal)?, context, terminal),
        Command::Search(args) => return show(&search::run(args, context, terminal), context, terminal),
        Command::Create(args) => return show(&create::run(args)?, context, terminal),
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
        Command::Doctor(args) => return show(&doctor::run(args, context, terminal)?, context, terminal),
        Command::Docker(args) => return docker::run(args, context, terminal),
        Command::Completions(args) => completions::run(args, terminal)?,
        Command::Man(args) => man::run(args, terminal)?,
        Command::Help(args) => help::run(args, context, terminal)?,
    }
    Ok(ExitCode::OK)
}
