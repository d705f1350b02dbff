//! `skillbox batch run`.

use std::path::Path;

use serde::Serialize;
use skillbox_batch::{
    BatchRun, CompletedBatch, ExistingResults, Progress, ResultDirectory, Summary, plan, read_existing, run_batch,
};
use skillbox_executor::CancelToken;
use skillbox_model::{ErrorCode, ExitCode};
use skillbox_sandbox::Profile;

use super::arguments::BatchRunArgs;
use super::job_preview::JobPreview;
use super::job_source::{JobSource, batch_failure};
use super::progress_display;
use super::summary_page::{self, ResultPlace};
use crate::commands::forwarder_thread::ForwarderThread;
use crate::commands::isolation_warning;
use crate::commands::output::print_output;
use crate::context::Context;
use crate::failure::Failure;
use crate::interrupt;
use crate::render::{Span, Terminal, Tone, Verbosity};
use crate::runtime_setup;

/// The summary for programs, with the directory of the results.
#[derive(Serialize)]
struct BatchReport<'a> {
    out: &'a Path,
    #[serde(flatten)]
    summary: &'a Summary,
}

pub fn run(args: &BatchRunArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    // The spawner of a single run was forked because the word `run` is on the command line.
    drop(context.spawner.take());
    let (host, _) = args.host.resolve(context.layers)?;
    let options = args.options();
    let source = JobSource::read(args)?;
    let directories = source.input_directories.clone();
    let runtime = runtime_setup::open_for_batch(context, &host, &directories, options.jobs.get(), terminal)?
        .with_call_secrets(args.secrets.names());
    let is_unconfined = runtime
        .profiles()
        .get(&host.profile)
        .is_some_and(Profile::is_unconfined);
    isolation_warning::print_if_unconfined(is_unconfined && host.allow_unconfined, isolation_warning::RUN, terminal)?;
    // Dropped after the last run has ended.
    let _forwarder = match args.dry_run {
        true => None,
        false => ForwarderThread::start(context, &runtime)?,
    };
    let (jobs, record) = source.into_jobs(&runtime, args.skip_bad)?;
    let cancel = CancelToken::new().map_err(|error| Failure::from_error(ErrorCode::Internal, &error))?;
    let progress = Progress::default();
    let batch = BatchRun {
        runtime: &runtime,
        jobs: &jobs,
        options: &options,
        progress: &progress,
        cancel: &cancel,
    };
    if args.dry_run {
        let existing = match &args.out {
            Some(out) if args.resumes() => read_existing(out).map_err(batch_failure)?,
            _ => ExistingResults::default(),
        };
        let plan = plan(batch, &existing);
        return print_output(&JobPreview::new(&jobs, &plan), context, terminal);
    }
    let Some(out) = &args.out else {
        return Err(Failure::usage("--out is missing", "name a directory for the results"));
    };
    let (directory, existing) = ResultDirectory::open(out, &record, args.resumes()).map_err(batch_failure)?;
    interrupt::cancel_on_signal(&cancel);
    let completed = progress_display::show_during(&progress, context.verbosity, terminal, || {
        let plan = plan(batch, &existing);
        run_batch(batch, &directory, &existing, plan)
    })?
    .map_err(batch_failure)?;
    print_end(&completed, out, context, terminal)?;
    Ok(exit_code(&completed.summary))
}

pub(super) fn exit_code(summary: &Summary) -> u8 {
    match summary {
        Summary { halted: Some(_), .. } => ExitCode::TIMED_OUT,
        Summary { failed: 0, .. } => ExitCode::OK,
        _ => ExitCode::FAILURE,
    }
}

fn print_end(
    completed: &CompletedBatch,
    out: &Path,
    context: &Context<'_>,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    if let Some((_, enforcement)) = &completed.weaker_run {
        isolation_warning::print_if_weaker(enforcement, terminal)?;
    }
    if let Some(error) = &completed.summary_error {
        let mut page = terminal.page();
        let text = format!("the summary is not written: {}", skillbox_model::with_causes(error));
        page.labelled(0, Span::new(Tone::Warning, "warning:"), 9, Tone::Plain, &text);
        terminal.print_message(page)?;
    }
    let summary = &completed.summary;
    if context.as_json {
        terminal.print_json(&BatchReport { out, summary })?;
    } else if context.verbosity > Verbosity::Quiet || summary.halted.is_some() {
        let mut page = terminal.page();
        summary_page::render(summary, &ResultPlace::Directory(out), &mut page);
        terminal.print(page)?;
    }
    Ok(())
}
