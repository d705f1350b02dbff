//! The skillbox command line: arguments → settings → command → rendering → exit code.
//!
//! This is the only crate that prints, reads the environment and decides exit codes. It holds no engine logic: it asks
//! the other crates and shows what they say, for people or, with `--json`, for programs.

mod args;
mod catalogue;
mod commands;
mod engine;
mod failure;
mod interrupt;
mod log_lines;
mod render;
mod settings;
mod sources;
mod traces;

use std::cell::Cell;
use std::path::Path;

use clap::error::ErrorKind;
use skillbox_model::ExitCode;
use skillbox_sandbox::{Spawner, SpawnerOptions};

use args::Line;
use commands::Context;
use failure::Failure;
use render::{Places, Span, Terminal, Tone, Verbosity};
use settings::{Environment, Layers};

fn main() -> std::process::ExitCode {
    skillbox_sandbox::become_spawner_if_asked();
    let spawner = spawner_of_a_run();
    let environment = Environment::of_process();
    let places = Places {
        working_dir: environment.working_dir().to_owned(),
        home: environment.home().map(Path::to_owned),
    };
    let mut terminal = Terminal::of_process(places);
    let code = match Line::of(std::env::args_os()) {
        Ok(line) => answer(&line, environment, spawner, &mut terminal),
        Err(error) => refuse(&error, &mut terminal),
    };
    code.into()
}

/// A run's spawner is forked off before anything else is done: it finds out about the host while this process reads its
/// arguments and settings, and there is little yet to copy. A word that only looks like the command costs a fork; a
/// failure comes up again, and is told, where the spawner is needed.
fn spawner_of_a_run() -> Option<Spawner> {
    let is_run = std::env::args_os()
        .skip(1)
        .take_while(|word| word != "--")
        .any(|word| word == "run");
    is_run.then(|| Spawner::fork_here(SpawnerOptions::one_shot()).ok())?
}

fn answer(line: &Line, environment: Environment, spawner: Option<Spawner>, terminal: &mut Terminal) -> u8 {
    let as_json = line.shared.json || line.command.always_speaks_json();
    let told = |failure: Failure, terminal: &mut Terminal| {
        // The lower codes of a run are its script's.
        let failure = if line.command.is_run() {
            failure.refusal()
        } else {
            failure
        };
        // Nothing is left to do when not even the failure can be told.
        failure.tell(terminal, as_json).unwrap_or(failure.exit())
    };
    obey(line, environment, spawner, terminal).unwrap_or_else(|failure| told(failure, terminal))
}

fn obey(
    line: &Line,
    environment: Environment,
    spawner: Option<Spawner>,
    terminal: &mut Terminal,
) -> Result<u8, Failure> {
    let shared = &line.shared;
    let layers = Layers::read(environment, shared.config.as_deref())?;
    let (settings, told_settings) = shared.settings.resolve(&layers)?;
    if !line.command.starts_its_own_log() {
        log_lines::start(settings.log, None);
    }
    let context = Context {
        settings: &settings,
        told_settings: &told_settings,
        layers: &layers,
        as_json: shared.json,
        verbosity: shared.verbosity(),
        spawner: Cell::new(spawner),
    };
    warn_of_misspelt_variables(&context, terminal)?;
    commands::dispatch(&line.command, &context, terminal)
}

/// Help and version are answers; everything else is a usage error, told to people in any case and to programs that
/// asked for JSON as the error object too.
fn refuse(error: &clap::Error, terminal: &mut Terminal) -> u8 {
    let asked_for = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    // A failed write leaves nobody to tell.
    let _ = terminal.own_text(!asked_for, &error.render().ansi().to_string());
    if asked_for {
        return ExitCode::OK;
    }
    let mut failure = Failure::usage(first_paragraph(error), "`--help` after the command tells its usage");
    if Line::is_of_run(std::env::args_os()) {
        failure = failure.refusal();
    }
    let as_json = std::env::args_os()
        .take_while(|word| word != "--")
        .any(|word| word == "--json");
    if as_json {
        let _ = failure.tell(terminal, as_json);
    }
    failure.exit()
}

/// What is wrong, in one line: usage and advice come after an empty one.
fn first_paragraph(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let lines = text.trim_start_matches("error: ").lines();
    let lines: Vec<&str> = lines.map(str::trim).take_while(|line| !line.is_empty()).collect();
    lines.join(" ")
}

/// A setting that its owner believes in, and that nobody reads, must not pass in silence.
fn warn_of_misspelt_variables(context: &Context<'_>, terminal: &mut Terminal) -> Result<(), Failure> {
    if context.verbosity == Verbosity::Quiet {
        return Ok(());
    }
    for (name, meant) in context.layers.misspelt_variables() {
        let mut page = terminal.page();
        let text = format!("the environment variable {name} is not a setting; did you mean {meant}?");
        page.beside(0, Span::new(Tone::Warning, "warning:"), 9, Tone::Plain, &text);
        terminal.tell(page)?;
    }
    Ok(())
}
