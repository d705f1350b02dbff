//! `skillbox batch run --queue`: submits the jobs, and waits for their results.

use std::path::Path;

use serde::Serialize;
use skillbox_batch::{
    BatchName, BatchRun, BatchStore, ExistingResults, Progress, ResultDirectory, Summary, follow, plan, submit,
};
use skillbox_executor::CancelToken;
use skillbox_model::{ErrorCode, ExitCode};

use super::arguments::BatchRunArgs;
use super::job_preview::JobPreview;
use super::job_source::{JobSource, batch_failure};
use super::progress_display;
use super::queue_arguments::queue_failure;
use super::run::exit_code;
use super::summary_page::{self, ResultPlace};
use crate::commands::output::print_output;
use crate::context::Context;
use crate::failure::Failure;
use crate::interrupt;
use crate::render::{Span, Terminal, Tone, Verbosity};
use crate::runtime_setup;

/// The summary for programs.
#[derive(Serialize)]
struct QueueReport<'a> {
    name: &'a BatchName,
    #[serde(skip_serializing_if = "Option::is_none")]
    out: Option<&'a Path>,
    #[serde(flatten)]
    summary: &'a Summary,
}

pub fn run(args: &BatchRunArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    drop(context.spawner.take());
    let Some(name) = &args.queue.name else {
        return Err(Failure::usage(
            "--name is missing",
            "give the batch a name: --queue … --name NAME",
        ));
    };
    let (mut host, _) = args.host.resolve(context.layers)?;
    // Nothing runs here.
    host.slots = 0;
    let options = args.options();
    let source = JobSource::read(args)?;
    let directories = source.input_directories.clone();
    let runtime = runtime_setup::open_for_batch(context, &host, &directories, 1, terminal)?;
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
        let plan = plan(batch, &ExistingResults::default());
        return print_output(&JobPreview::new(&jobs, &plan), context, terminal);
    }
    let (queue, store) = args.queue.connect(context)?;
    let store = BatchStore::new(&store, name);
    let directory = args
        .out
        .as_deref()
        .map(|out| ResultDirectory::open(out, &record, args.resumes()));
    let directory = directory.transpose().map_err(batch_failure)?;
    interrupt::cancel_on_signal(&cancel);
    let submitted = submit(batch, &record, &queue, &store, args.submit_options()).map_err(queue_failure)?;
    if submitted.copies == 1 && context.verbosity > Verbosity::Quiet {
        let text = "the queue keeps one copy of each job, because it has fewer than three servers; --resume submits \
                    lost jobs again";
        print_note(text, terminal)?;
    }
    if args.detach {
        if context.verbosity > Verbosity::Quiet {
            print_note(&format!("the batch {name} is submitted: {} jobs", jobs.len()), terminal)?;
        }
        return Ok(ExitCode::OK);
    }
    let output = directory.as_ref().map(|(directory, existing)| (directory, existing));
    let followed = progress_display::show_during(&progress, context.verbosity, terminal, || {
        follow(batch, &queue, &store, &submitted, output)
    })?
    .map_err(queue_failure)?;
    if let Some(error) = &followed.summary_error {
        print_note(
            &format!("the summary is not written: {}", skillbox_model::with_causes(error)),
            terminal,
        )?;
    }
    let summary = &followed.summary;
    if context.as_json {
        terminal.print_json(&QueueReport {
            name,
            out: args.out.as_deref(),
            summary,
        })?;
    } else if context.verbosity > Verbosity::Quiet || summary.halted.is_some() {
        let mut page = terminal.page();
        let place = match &args.out {
            Some(out) => ResultPlace::Directory(out),
            None => ResultPlace::Store(name),
        };
        summary_page::render(summary, &place, &mut page);
        terminal.print(page)?;
        if cancel.is_cancelled() {
            print_note(
                &format!("the workers continue; `skillbox batch cancel {name}` stops them"),
                terminal,
            )?;
        }
    }
    Ok(exit_code(summary))
}

fn print_note(text: &str, terminal: &mut Terminal) -> Result<(), Failure> {
    let mut page = terminal.page();
    page.labelled(0, Span::new(Tone::Dim, "note:"), 6, Tone::Plain, text);
    terminal.print_message(page)?;
    Ok(())
}
