//! `skillbox run`: runs a command of a skill in the sandbox.

use std::io;
use std::path::PathBuf;

use clap::Args;
use skillbox_executor::{CancelToken, EventSink};
use skillbox_model::{
    ErrorBody, ErrorCode, ExecutorKind, ExitCode, RunEvent, RunReport, RunRequest, SessionId, Stream,
};
use skillbox_runtime::{ExistingFiles, ExportTarget, RunContext, RunOrigin, new_run_id, select_profile};
use skillbox_sandbox::{Profile, SpawnerOptions};

use super::isolation_warning;
use super::run_request::{ParsedRequest, RequestArgs};
use super::run_skill;
use super::run_spinner::RunSpinner;
use super::run_summary::{SummaryStyle, print_summary};
use super::secret_arguments::SecretArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::interrupt;
use crate::render::{Terminal, Verbosity, plural};
use crate::runtime_setup;
use crate::settings::{HostFlags, HostSettings, Origin, ResolvedSetting, TrustFlags};

/// Run a command of a skill in the sandbox
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox run python-math -- 'python3 scripts/fib.py 10'",
    "skillbox run csv-report --input data.csv --output 'out/**' --out-dir results \\",
    "    -- 'python3 scripts/report.py inputs/data.csv --svg out/chart.svg'",
    "skillbox run python-math --script scripts/fib.py -- 10     without a shell",
    "skillbox run ./my-skill -- 'bash scripts/count.sh README.md'",
    "skillbox run python-math                                   list the scripts",
    "skillbox run --request request.json --json                 request as JSON",
    "skillbox run weather --allow-net api.example.com -- 'python3 scripts/today.py'",
    "skillbox run csv-report --with numpy,pandas -- 'python3 -c \"import pandas\"'",
    "skillbox run weather --secret API_TOKEN -- 'python3 scripts/today.py'",
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
    /// Overwrite existing files in --out-dir
    #[arg(long, requires = "out_dir")]
    force: bool,
    #[command(flatten)]
    secrets: SecretArgs,
    /// Also install these Python packages for this run: NAME or NAME==VERSION; repeatable
    #[arg(long, value_name = "PACKAGES", value_delimiter = ',')]
    with: Vec<String>,
    #[command(flatten)]
    host: HostFlags,
    #[command(flatten)]
    pub(super) trust: TrustFlags,
}

impl RunArgs {
    fn export_target(&self) -> Option<ExportTarget> {
        Some(ExportTarget {
            directory: self.out_dir.clone()?,
            existing_files: if self.force {
                ExistingFiles::Replace
            } else {
                ExistingFiles::Keep
            },
        })
    }
}

pub fn run(args: &RunArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let spawner = match context.spawner.take() {
        Some(spawner) => Ok(spawner),
        None => runtime_setup::fork_spawner(SpawnerOptions::for_single_run()),
    };
    if let (Some(skill), false) = (args.request.skill(), args.request.has_command()) {
        return Err(run_skill::report_missing_command(skill, context, terminal)?);
    }
    let (host, resolved) = args.host.resolve(context.layers)?;
    let named_skill = run_skill::named_skill(args.request.skill(), context)?;
    let ParsedRequest {
        mut request,
        input_directories,
    } = args.request.to_request()?;
    set_from_flags(&mut request, &host, &resolved);
    let profile = request.profile.clone();
    let profile = profile.as_deref();
    let executor = request.executor.unwrap_or(host.executor);
    // A host that cannot sandbox processes can still run containers.
    let spawner = match (spawner, executor) {
        (Err(_), ExecutorKind::Docker) => None,
        (spawner, _) => Some(spawner?),
    };
    let target = (executor, profile);
    let inputs = (input_directories.as_slice(), named_skill.as_ref(), args.with.as_slice());
    let runtime = runtime_setup::open_for_run(context, &host, inputs, spawner, target, terminal)?
        .with_call_secrets(args.secrets.names());
    let shadow_warning = {
        let catalog = runtime.catalog();
        if let Some(name) = run_skill::resolve_name(&catalog, &request.skill, named_skill.as_ref())? {
            request.skill = name;
        }
        run_skill::shadow_warning(&catalog, &request.skill)
    };
    let is_unconfined = runtime
        .profiles()
        .get(select_profile(
            profile,
            &host.profile,
            &host.allow_net.iter().cloned().collect(),
        ))
        .is_some_and(Profile::is_unconfined);
    isolation_warning::print_if_unconfined(is_unconfined && host.allow_unconfined, isolation_warning::RUN, terminal)?;
    let session = args.session.as_deref().map(parse_session_id).transpose()?;
    let cancel = CancelToken::new().map_err(|error| Failure::from_error(ErrorCode::Internal, &error))?;
    interrupt::cancel_on_signal(&cancel);
    let mut write_error = None;
    let is_spinner_visible = terminal.is_stderr_terminal() && context.verbosity > Verbosity::Quiet;
    let completed = RunSpinner::show_during(is_spinner_visible, |spinner| {
        let mut stream = |event: RunEvent| write_output(event, spinner, terminal, &mut write_error);
        let events = if context.as_json {
            EventSink::silent()
        } else {
            EventSink::with_listener(&mut stream)
        };
        let run_context = RunContext {
            session,
            events,
            cancel,
            export: args.export_target(),
            origin: RunOrigin::default(),
            keep_files: false,
        };
        runtime
            .run_with_id(new_run_id(), &request, run_context)
            .map_err(|error| Failure::from_body(error.body()))
    })?;
    let mut report = completed.report;
    report.warnings.extend(shadow_warning);
    let requested = RequestedOutputs {
        is_any: args.out_dir.is_some() || requests_outputs(&request),
        are_unwritten: !completed.export_failures.is_empty(),
    };
    let code = print_report(&report, requested, context, terminal)?;
    match write_error {
        Some(error) => Err(error.into()),
        None => Ok(code),
    }
}

/// What the caller asked for besides the output of the script.
#[derive(Clone, Copy)]
struct RequestedOutputs {
    /// Whether the caller asked for output files.
    is_any: bool,
    /// Whether a file could not be written to the directory of --out-dir.
    are_unwritten: bool,
}

impl RequestedOutputs {
    /// The exit code. If an output file could not be written, the run failed, whatever the exit code of the script. If one
    /// was refused, a script that succeeded has not delivered what was asked for.
    fn exit_code(self, report: &RunReport) -> u8 {
        let code = report.outcome().process_exit_code();
        let has_refusals = self.is_any && !report.refused_outputs.is_empty();
        if self.are_unwritten || (has_refusals && code == ExitCode::OK) {
            ExitCode::REFUSED
        } else {
            code
        }
    }
}

fn requests_outputs(request: &RunRequest) -> bool {
    let has_globs = request
        .outputs
        .as_ref()
        .is_some_and(|outputs| !outputs.globs.is_empty());
    has_globs || !request.output_files.is_empty()
}

/// Lets `--profile` and `--executor` replace what a request file names. Other origins of these settings are defaults.
fn set_from_flags(request: &mut RunRequest, host: &HostSettings, resolved: &[ResolvedSetting]) {
    let is_flag = |key: &str| {
        let setting = resolved.iter().find(|setting| setting.declaration.key == key);
        setting.is_some_and(|setting| matches!(setting.origin, Origin::Flag(_)))
    };
    if is_flag("profile") {
        request.profile = Some(host.profile.clone());
    }
    if is_flag("executor") {
        request.executor = Some(host.executor);
    }
}

fn print_report(
    report: &RunReport,
    requested: RequestedOutputs,
    context: &Context<'_>,
    terminal: &mut Terminal,
) -> Result<u8, Failure> {
    isolation_warning::print_if_weaker(&report.enforcement, terminal)?;
    let code = requested.exit_code(report);
    if context.as_json {
        terminal.print_json(report)?;
    } else {
        let style = SummaryStyle {
            has_requested_outputs: requested.is_any,
            exit_code: code,
            verbosity: context.verbosity,
        };
        print_summary(report, &style, terminal)?;
    }
    Ok(code)
}

/// Forwards output of the script to the same stream of this process.
fn write_output(event: RunEvent, spinner: &RunSpinner, terminal: &mut Terminal, write_error: &mut Option<io::Error>) {
    if let RunEvent::BuildingEnvironment { declared } = event {
        print_building(declared, spinner, terminal);
        return;
    }
    if let RunEvent::Output { stream, bytes, .. } = event {
        let written = spinner.write(&bytes.0, || match stream {
            Stream::Stdout => terminal.write_stdout(&bytes.0),
            Stream::Stderr => terminal.write_stderr(&bytes.0),
        });
        match written {
            // A closed pipe does not end the run: its output files are still collected.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => *write_error = Some(error),
            _ => {}
        }
    }
}

/// Says that packages are installed, which can take minutes. A failure to say so changes nothing.
fn print_building(declared: usize, spinner: &RunSpinner, terminal: &mut Terminal) {
    let line = format!("installing {}\n", plural(declared, "declared package"));
    let _written = spinner.write(line.as_bytes(), || terminal.write_stderr(line.as_bytes()));
}

fn parse_session_id(text: &str) -> Result<SessionId, Failure> {
    SessionId::parse(text).map_err(|error| {
        Failure::from_body(ErrorBody::new(ErrorCode::InvalidRequest, error.to_string()).with_field("session"))
    })
}
