//! `skillbox run`: runs a command of a skill in the sandbox.

use std::io;
use std::path::PathBuf;

use clap::Args;
use skillbox_executor::{CancelToken, EventSink};
use skillbox_model::{
    ErrorBody, ErrorCode, ExecutorKind, ExitCode, RunEvent, RunReport, RunRequest, SessionId, Stream,
};
use skillbox_runtime::{RunContext, new_run_id};
use skillbox_sandbox::SpawnerOptions;

use super::run_request::RequestArgs;
use super::run_summary::print_summary;
use crate::context::Context;
use crate::failure::Failure;
use crate::interrupt;
use crate::render::Terminal;
use crate::runtime_setup;
use crate::settings::HostFlags;

/// Run a command of a skill in the sandbox
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox run python-math -- 'python3 scripts/fib.py 10'",
    "skillbox run csv-report --input data.csv --output 'out/**' --out-dir results \\",
    "    -- 'python3 scripts/report.py inputs/data.csv --svg out/chart.svg'",
    "skillbox run python-math --script scripts/fib.py -- 10     without a shell",
    "skillbox run --request request.json --json                 request as JSON",
))]
pub struct RunArgs {
    #[command(flatten)]
    request: RequestArgs,
    /// Use the persistent workspace of this session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Write the output files to this directory
    #[arg(long, value_name = "DIR")]
    out_dir: Option<PathBuf>,
    #[command(flatten)]
    host: HostFlags,
}

pub fn run(args: &RunArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let spawner = match context.spawner.take() {
        Some(spawner) => Ok(spawner),
        None => runtime_setup::fork_spawner(SpawnerOptions::one_shot()),
    };
    let (host, _) = args.host.resolve(context.layers)?;
    let parsed = args.request.to_request()?;
    let profile = parsed.request.profile.as_deref();
    let executor = parsed.request.executor.unwrap_or(host.executor);
    // A host that cannot sandbox processes can still run containers.
    let spawner = match (spawner, executor) {
        (Err(_), ExecutorKind::Docker) => None,
        (spawner, _) => Some(spawner?),
    };
    let target = (executor, profile);
    let runtime = runtime_setup::open_for_run(context, &host, &parsed.input_directories, spawner, target, terminal)?;
    let session = args.session.as_deref().map(parse_session_id).transpose()?;
    let cancel =
        CancelToken::new().map_err(|error| Failure::from_error(ErrorCode::Internal, &error).with_run_exit_code())?;
    interrupt::cancel_on_signal(&cancel);
    let mut write_error = None;
    let completed = {
        let mut stream = |event: RunEvent| write_output(event, terminal, &mut write_error);
        let events = if context.as_json {
            EventSink::silent()
        } else {
            EventSink::with_listener(&mut stream)
        };
        let run_context = RunContext {
            session,
            events,
            cancel,
            export_dir: args.out_dir.clone(),
        };
        runtime
            .run_with_id(new_run_id(), &parsed.request, run_context)
            .map_err(|error| Failure::of_run(error.body()))?
    };
    let code = print_report(&completed.report, args, &parsed.request, context, terminal)?;
    if let Some(error) = write_error {
        return Err(error.into());
    }
    // If an output file could not be written, the run failed, whatever the exit code of the script.
    Ok(if completed.export_failures.is_empty() {
        code
    } else {
        ExitCode::REFUSED
    })
}

fn print_report(
    report: &RunReport,
    args: &RunArgs,
    request: &RunRequest,
    context: &Context<'_>,
    terminal: &mut Terminal,
) -> Result<u8, Failure> {
    if context.as_json {
        terminal.print_json(report)?;
    } else {
        let has_requested_outputs =
            args.out_dir.is_some() || request.outputs.is_some() || !request.output_files.is_empty();
        print_summary(report, has_requested_outputs, context.verbosity, terminal)?;
    }
    Ok(report.outcome().process_exit_code())
}

/// Forwards output of the script to the same stream of this process.
fn write_output(event: RunEvent, terminal: &mut Terminal, write_error: &mut Option<io::Error>) {
    if let RunEvent::Output { stream, bytes, .. } = event {
        let written = match stream {
            Stream::Stdout => terminal.write_stdout(&bytes.0),
            Stream::Stderr => terminal.write_stderr(&bytes.0),
        };
        match written {
            // A closed pipe does not end the run: its output files are still collected.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => *write_error = Some(error),
            _ => {}
        }
    }
}

fn parse_session_id(text: &str) -> Result<SessionId, Failure> {
    SessionId::parse(text).map_err(|error| {
        Failure::of_run(ErrorBody::new(ErrorCode::InvalidRequest, error.to_string()).with_field("session"))
    })
}
