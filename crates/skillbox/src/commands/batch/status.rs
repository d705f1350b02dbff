//! `skillbox batch status`: how far a batch is, whether it runs or not.

use std::path::{Path, PathBuf};

use serde::Serialize;
use skillbox_batch::Summary;

use super::job_source::batch_failure;
use super::summary_page;
use crate::commands::output::CommandOutput;
use crate::failure::Failure;
use crate::render::{Page, Span, Tone};

/// The state of a batch.
#[derive(Serialize)]
pub struct BatchStatus {
    out: PathBuf,
    description: String,
    running: bool,
    #[serde(flatten)]
    summary: Summary,
}

/// Reads the state of the batch in a directory.
pub fn read(directory: &Path) -> Result<BatchStatus, Failure> {
    let (record, summary, running) = Summary::of_directory(directory).map_err(batch_failure)?;
    Ok(BatchStatus {
        out: directory.to_owned(),
        description: record.description,
        running,
        summary,
    })
}

impl CommandOutput for BatchStatus {
    fn render(&self, page: &mut Page) {
        let (tone, state) = if self.running {
            (Tone::Good, "running")
        } else if self.summary.not_run > 0 {
            (Tone::Warning, "incomplete")
        } else {
            (Tone::Plain, "complete")
        };
        page.line(&[
            Span::new(Tone::Name, &self.description),
            Span::plain(": "),
            Span::new(tone, state),
        ]);
        summary_page::render_counts(&self.summary, page);
        for (cause, count) in &self.summary.causes {
            page.labelled(2, Span::plain(cause.as_str()), 14, Tone::Plain, &count.to_string());
        }
    }
}
