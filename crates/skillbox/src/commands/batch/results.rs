//! `skillbox batch results`: the results of a batch, one line for each job.

use std::path::Path;

use skillbox_batch::{JobStatus, ResultHead, read_results};
use skillbox_model::ExitCode;

use super::job_source::batch_failure;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Span, Terminal, Tone};

/// Prints the results: for programs the lines of `results.jsonl`, for people id, status, duration and reason.
pub fn print(
    directory: &Path,
    only_failed: bool,
    context: &Context<'_>,
    terminal: &mut Terminal,
) -> Result<u8, Failure> {
    let mut write_error = None;
    read_results(directory, &mut |line, head| {
        if write_error.is_none() && (!only_failed || head.status == JobStatus::Failed) {
            let written = if context.as_json {
                terminal.write_stdout(line)
            } else {
                print_row(&head, terminal)
            };
            write_error = written.err();
        }
        Ok(())
    })
    .map_err(batch_failure)?;
    match write_error {
        Some(error) => Err(error.into()),
        None => Ok(ExitCode::OK),
    }
}

pub(super) fn print_row(head: &ResultHead, terminal: &mut Terminal) -> std::io::Result<()> {
    let mut page = terminal.page();
    let (tone, status) = match head.status {
        JobStatus::Ok => (Tone::Good, "ok    "),
        JobStatus::Failed => (Tone::Bad, "failed"),
    };
    let duration = head.duration_ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms} ms"));
    let reason = head.reason.as_deref().unwrap_or_default();
    page.line(&[
        Span::new(tone, status),
        Span::plain(format!("  {duration:>9}  ")),
        Span::new(Tone::Name, head.id.as_str()),
        Span::plain(format!("  {reason}")),
    ]);
    terminal.print(page)
}
