//! The commands and their dispatch.

use clap::Subcommand;
use skillbox_model::ExitCode;

use super::output::print_output;
use super::{
    approvals, approve, artifacts, audit, batch, call, completions, config, create, demo, docker, doctor, env, help,
    info, list, lock, man, mcp, profiles, prompt, read_properties, run, runs, search, secrets, serve, session, sign,
    state, to_prompt, tools, validate, verify, worker,
};
use crate::context::Context;
use crate::failure::Failure;
use crate::render::Terminal;
use crate::settings::TrustFlags;

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
    Batch(batch::BatchArgs),
    Worker(Box<worker::WorkerArgs>),
    Mcp(Box<mcp::McpArgs>),
    Serve(Box<serve::ServeArgs>),
    Env(Box<env::EnvArgs>),
    Session(session::SessionArgs),
    Runs(Box<runs::RunsArgs>),
    Artifacts(artifacts::ArtifactsArgs),
    State(state::StateArgs),
    Approve(Box<approve::ApproveArgs>),
    Approvals(Box<approvals::ApprovalsArgs>),
    Lock(Box<lock::LockArgs>),
    Sign(Box<sign::SignArgs>),
    Verify(Box<verify::VerifyArgs>),
    Audit(Box<audit::AuditArgs>),
    Secrets(secrets::SecretsArgs),
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

    /// Whether settings decide what the command does. Such a command does nothing while the config file of the working
    /// directory contains settings that need the user's trust.
    pub fn obeys_settings(&self) -> bool {
        !matches!(
            self,
            Self::Config(_)
                | Self::Help(_)
                | Self::Completions(_)
                | Self::Man(_)
                | Self::Create(_)
                | Self::Validate(_)
                | Self::ReadProperties(_)
                | Self::ToPrompt(_)
        )
    }

    /// The trust flags of the command; none are given to other commands.
    pub fn trust_flags(&self) -> TrustFlags {
        match self {
            Self::Run(args) => args.trust.clone(),
            Self::Call(args) => args.trust.clone(),
            Self::Mcp(args) => args.trust.clone(),
            Self::Serve(args) => args.trust.clone(),
            Self::Worker(args) => args.trust.clone(),
            Self::Runs(args) => args.trust.clone(),
            Self::Approve(args) => args.trust.clone(),
            Self::Approvals(args) => args.trust.clone(),
            Self::Lock(args) => args.trust.clone(),
            Self::Sign(args) => args.trust.clone(),
            Self::Verify(args) => args.trust.clone(),
            Self::Audit(args) => args.trust.clone(),
            _ => TrustFlags::default(),
        }
    }

    /// Whether lower exit codes are those of the script, or say that jobs failed.
    pub fn has_exit_codes_of_runs(&self) -> bool {
        matches!(self, Self::Run(_) | Self::Batch(_))
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
        Command::Batch(args) => return batch::run(args, context, terminal),
        Command::Worker(args) => return worker::run(args, context, terminal),
        Command::Mcp(args) => return mcp::run(args, context, terminal),
        Command::Serve(args) => return serve::run(args, context, terminal),
        Command::Env(args) => return env::run(args, context, terminal),
        Command::Session(args) => return session::run(args, context, terminal),
        Command::Runs(args) => return runs::run(args, context, terminal),
        Command::Approve(args) => return approve::run(args, context, terminal),
        Command::Approvals(args) => return approvals::run(args, context, terminal),
        Command::Lock(args) => return lock::run(args, context, terminal),
        Command::Sign(args) => return sign::run(args, context, terminal),
        Command::Verify(args) => return verify::run(args, context, terminal),
        Command::Audit(args) => return audit::run(args, context, terminal),
        Command::Secrets(args) => return secrets::run(args, context, terminal),
        Command::Artifacts(args) => return artifacts::run(args, context, terminal),
        Command::State(args) => return state::run(args, context, terminal),
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
