//! `skillbox run`: one skill's command in the sandbox.

use std::io;
use std::path::PathBuf;

use clap::Args;
use skillbox_executor::{Cancel, EventSink};
use skillbox_model::{
    ErrorBody, ErrorCode, ExecutorKind, ExitCode, RunEvent, RunReport, RunRequest, SessionId, Stream,
};
use skillbox_runtime::{RunContext, new_run_id};
use skillbox_sandbox::SpawnerOptions;

use super::Context;
use super::run_request::RequestArgs;
use super::run_summary::tell_summary;
use crate::engine;
use crate::failure::Failure;
use crate::interrupt;
use crate::render::Terminal;
use crate::settings::HostFlags;

/// Run a skill's command in the sandbox and bring its outputs back
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox run python-math -- 'python3 scripts/fib.py 10'",
    "skillbox run csv-report --input data.csv --output 'out/**' --out-dir results \\",
    "    -- 'python3 scripts/report.py inputs/data.csv --svg out/chart.svg'",
    "skillbox run python-math --script scripts/fib.py -- 10     no shell involved",
    "skillbox run --request request.json --json                 the whole request",
))]
pub struct RunArgs {
    #[command(flatten)]
    request: RequestArgs,
    /// Keep the workspace under this name, for later runs
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Write the collected files below this directory
    #[arg(long, value_name = "DIR")]
    out_dir: Option<PathBuf>,
    #[command(flatten)]
    host: HostFlags,
}

pub fn run(args: &RunArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let spawner = match context.spawner.take() {
        Some(spawner) => Ok(spawner),
        None => engine::spawner(SpawnerOptions::one_shot()),
    };
    let (host, _) = args.host.resolve(context.layers)?;
    let asked = args.request.to_request()?;
    let profile = asked.request.profile.as_deref();
    let executor = asked.request.executor.unwrap_or(host.executor);
    // A host without the kernel's sandbox still has containers, perhaps.
    let spawner = match (spawner, executor) {
        (Err(_), ExecutorKind::Docker) => None,
        (spawner, _) => Some(spawner?),
    };
    let wanted = (executor, profile);
    let runtime = engine::open_for_one(context, &host, &asked.used_directories, spawner, wanted, terminal)?;
    let session = args.session.as_deref().map(session_id).transpose()?;
    let cancel = Cancel::new().map_err(|error| Failure::from_error(ErrorCode::Internal, &error).refusal())?;
    interrupt::cancel_on_signal(&cancel);
    let mut lost = None;
    let ran = {
        let mut stream = |event: RunEvent| pass_on(event, terminal, &mut lost);
        let events = if context.as_json {
            EventSink::silent()
        } else {
            EventSink::to(&mut stream)
        };
        let around = RunContext {
            session,
            events,
            cancel,
            export: args.out_dir.clone(),
        };
        runtime
            .run_as(new_run_id(), &asked.request, around)
            .map_err(|error| Failure::refused(error.body()))?
    };
    let code = answer(&ran.report, args, &asked.request, context, terminal)?;
    if let Some(error) = lost {
        return Err(error.into());
    }
    // Its files are not where they were wanted, whatever the script says of itself.
    Ok(if ran.unwritten.is_empty() {
        code
    } else {
        ExitCode::REFUSED
    })
}

fn answer(
    report: &RunReport,
    args: &RunArgs,
    request: &RunRequest,
    context: &Context<'_>,
    terminal: &mut Terminal,
) -> Result<u8, Failure> {
    if context.as_json {
        terminal.json(report)?;
    } else {
        let asked = args.out_dir.is_some() || request.outputs.is_some() || !request.output_files.is_empty();
        tell_summary(report, asked, context.verbosity, terminal)?;
    }
    Ok(report.outcome().process_exit_code())
}

/// What the script writes goes where it would have gone without us, as it comes.
fn pass_on(event: RunEvent, terminal: &mut Terminal, lost: &mut Option<io::Error>) {
    if let RunEvent::Output { stream, text, .. } = event {
        let written = match stream {
            Stream::Stdout => terminal.exact_out(&text.0),
            Stream::Stderr => terminal.exact_err(&text.0),
        };
        match written {
            // A reader that went away does not end the run; its outputs are still wanted.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => *lost = Some(error),
            _ => {}
        }
    }
}

fn session_id(text: &str) -> Result<SessionId, Failure> {
    SessionId::parse(text).map_err(|error| {
        Failure::refused(ErrorBody::new(ErrorCode::InvalidRequest, error.to_string()).in_field("session"))
    })
}
