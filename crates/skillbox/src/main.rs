//! The skillbox command line: arguments → settings → command → output → exit code.
//!
//! This is the only crate that prints, reads the environment and chooses exit codes. It contains no engine logic: it
//! calls the other crates and prints their results, for people or, with `--json`, for programs.

mod args;
mod audit_forward;
mod catalog;
mod commands;
mod context;
mod egress_setup;
mod examples;
mod failure;
mod forward_target;
mod host_registries;
mod interrupt;
mod logging;
mod render;
mod runtime_setup;
mod secret_source;
mod settings;
mod sources;
mod trace_export;
mod trust_setup;

use std::cell::Cell;
use std::path::Path;

use clap::CommandFactory;
use clap::error::ErrorKind;
use skillbox_model::ExitCode;
use skillbox_sandbox::{Spawner, SpawnerOptions};

use args::CommandLine;
use context::Context;
use failure::Failure;
use render::{PathShortener, Terminal};
use settings::Environment;

fn main() -> std::process::ExitCode {
    skillbox_sandbox::run_spawner_if_requested();
    let spawner = fork_spawner_for_run();
    let environment = Environment::of_process();
    let shortener = PathShortener {
        working_dir: environment.working_dir().to_owned(),
        home: environment.home().map(Path::to_owned),
    };
    let mut terminal = Terminal::of_process(shortener);
    let code = match CommandLine::parse_words(std::env::args_os()) {
        Ok(line) => execute(&line, environment, spawner, &mut terminal),
        Err(error) => report_parse_error(&error, &mut terminal),
    };
    code.into()
}

/// Forks the spawner before anything else if the command seems to be `run`: the spawner probes the host while this
/// process reads its arguments and settings, and the fork has little memory to copy. If the word `run` is not the
/// command, one fork is wasted. A failure is ignored here: the command forks again, and reports the failure then.
fn fork_spawner_for_run() -> Option<Spawner> {
    let is_run = std::env::args_os()
        .skip(1)
        .take_while(|word| word != "--")
        .any(|word| word == "run");
    is_run.then(|| Spawner::fork_this_process(SpawnerOptions::for_single_run()).ok())?
}

fn execute(line: &CommandLine, environment: Environment, spawner: Option<Spawner>, terminal: &mut Terminal) -> u8 {
    let as_json = line.options.json || line.command.always_prints_json();
    execute_command(line, environment, spawner, terminal).unwrap_or_else(|failure| {
        // Lower exit codes of `run` are those of the script; those of `batch` say how its jobs ended.
        let failure = if line.command.has_exit_codes_of_runs() {
            failure.with_run_exit_code()
        } else {
            failure
        };
        // If the failure itself cannot be printed, only the exit code is left.
        failure.print(terminal, as_json).unwrap_or(failure.exit_code())
    })
}

fn execute_command(
    line: &CommandLine,
    environment: Environment,
    spawner: Option<Spawner>,
    terminal: &mut Terminal,
) -> Result<u8, Failure> {
    let options = &line.options;
    let layers = settings::read_layers(environment, options.config.as_deref())?;
    if line.command.obeys_settings() && !layers.refusals().is_empty() {
        return Err(Failure::untrusted_settings(layers.refusals()));
    }
    let (settings, resolved_settings) = options.settings.resolve(&layers)?;
    let (trust, _) = line.command.trust_flags().resolve(&layers)?;
    if !line.command.starts_logging_itself() {
        logging::start(settings.log, None);
    }
    let context = Context {
        settings: &settings,
        trust: &trust,
        resolved_settings: &resolved_settings,
        layers: &layers,
        config_path: options.config.as_deref(),
        as_json: options.json,
        verbosity: options.verbosity(),
        spawner: Cell::new(spawner),
        command_line: CommandLine::command,
    };
    // A server does this itself, when its log has started.
    if !line.command.starts_logging_itself() {
        commands::warn_about_misspelled_variables(&context, terminal)?;
    }
    commands::dispatch(&line.command, &context, terminal)
}

/// Prints help and version on stdout. Any other parse error is a usage error: text on stderr and, with `--json`, also
/// an error object on stdout.
fn report_parse_error(error: &clap::Error, terminal: &mut Terminal) -> u8 {
    let is_help_or_version = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    let text = error.render().ansi().to_string();
    // A failed write cannot be reported anywhere.
    if is_help_or_version {
        let _ = terminal.print_styled(&text);
        return ExitCode::OK;
    }
    let _ = terminal.print_styled_message(&text);
    let mut failure = Failure::usage(first_paragraph(error), "add --help after the command for its usage");
    if CommandLine::names_run_command(std::env::args_os()) {
        failure = failure.with_run_exit_code();
    }
    let as_json = std::env::args_os()
        .take_while(|word| word != "--")
        .any(|word| word == "--json");
    if as_json {
        let _ = failure.print(terminal, as_json);
    }
    failure.exit_code()
}

/// The message as one line, without the usage and the tips that follow after a blank line.
fn first_paragraph(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let lines = text.trim_start_matches("error: ").lines();
    let lines: Vec<&str> = lines.map(str::trim).take_while(|line| !line.is_empty()).collect();
    lines.join(" ")
}
