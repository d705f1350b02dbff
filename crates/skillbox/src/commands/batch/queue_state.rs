//! `skillbox batch status`, `results` and `cancel` for a batch on a queue, from any host.

use std::path::Path;

use serde::Serialize;
use skillbox_batch::{BatchName, BatchState, BatchStore, JobStatus, cancel_batch, read_result_lines, read_state};
use skillbox_model::ExitCode;

use super::queue_arguments::{QueueArgs, queue_failure, shared_store};
use super::results::print_row;
use super::summary_page;
use crate::commands::output::CommandOutput;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Page, Span, Terminal, Tone, plural};

/// The state of a batch on a queue.
#[derive(Serialize)]
pub struct QueueStatus {
    name: BatchName,
    #[serde(flatten)]
    state: BatchState,
}

/// Reads the state of a batch.
pub fn status(batch: &Path, queue: &QueueArgs, context: &Context<'_>) -> Result<QueueStatus, Failure> {
    let name = parse_name(batch)?;
    let (queue, store) = queue.connect(context)?;
    let state = read_state(&queue, &BatchStore::new(&store, &name)).map_err(queue_failure)?;
    Ok(QueueStatus { name, state })
}

impl CommandOutput for QueueStatus {
    fn render(&self, page: &mut Page) {
        let state = &self.state;
        let (tone, word) = match (state.summary.not_run, state.cancelled, state.queued) {
            (0, ..) => (Tone::Plain, "complete"),
            (_, true, _) => (Tone::Warning, "cancelled"),
            (_, _, None | Some(0)) => (Tone::Warning, "incomplete"),
            _ if state.workers.is_empty() => (Tone::Warning, "no worker"),
            _ => (Tone::Good, "running"),
        };
        let title = format!("{} ({})", self.name, state.description);
        page.line(&[Span::new(Tone::Name, &title), Span::plain(": "), Span::new(tone, word)]);
        summary_page::render_counts(&state.summary, page);
        for (cause, count) in &state.summary.causes {
            page.labelled(2, Span::plain(cause.as_str()), 14, Tone::Plain, &count.to_string());
        }
        if let Some(queued) = state.queued {
            page.line(&[Span::plain(format!(
                "{} on the queue",
                plural(usize::try_from(queued).unwrap_or(usize::MAX), "job")
            ))]);
        }
        for worker in &state.workers {
            let text = format!(
                "{} of {} running, {} finished",
                worker.running, worker.slots, worker.finished
            );
            page.labelled(
                2,
                Span::plain(worker.id.as_str()),
                worker.id.len() + 4,
                Tone::Dim,
                &text,
            );
        }
    }
}

/// Prints the results of a batch from the store.
pub fn print_results(
    batch: &Path,
    only_failed: bool,
    context: &Context<'_>,
    terminal: &mut Terminal,
) -> Result<u8, Failure> {
    let name = parse_name(batch)?;
    let store = BatchStore::new(&shared_store(context)?, &name);
    let mut write_error = None;
    read_result_lines(&store, &mut |line, head| {
        if write_error.is_none() && (!only_failed || head.status == JobStatus::Failed) {
            let written = match context.as_json {
                true => terminal.write_stdout(line),
                false => print_row(head, terminal),
            };
            write_error = written.err();
        }
        Ok(())
    })
    .map_err(queue_failure)?;
    match write_error {
        Some(error) => Err(error.into()),
        None => Ok(ExitCode::OK),
    }
}

/// What cancelling did.
#[derive(Serialize)]
pub struct Cancellation {
    name: BatchName,
    cancelled: bool,
}

/// Cancels a batch.
pub fn cancel(name: &BatchName, queue: &QueueArgs, context: &Context<'_>) -> Result<Cancellation, Failure> {
    let (queue, store) = queue.connect(context)?;
    let cancelled = cancel_batch(&queue, &BatchStore::new(&store, name)).map_err(queue_failure)?;
    Ok(Cancellation {
        name: name.clone(),
        cancelled,
    })
}

impl CommandOutput for Cancellation {
    fn render(&self, page: &mut Page) {
        let text = match self.cancelled {
            true => format!("the batch {} is cancelled", self.name),
            false => format!("the batch {} was over already", self.name),
        };
        page.line(&[Span::plain(text)]);
    }
}

fn parse_name(batch: &Path) -> Result<BatchName, Failure> {
    let text = batch.to_string_lossy().into_owned();
    BatchName::parse(text).map_err(|message| Failure::invalid_field("name", message))
}
