//! What `--dry-run` shows: the first jobs with their requests.

use serde::Serialize;
use skillbox_batch::{JobList, Plan};
use skillbox_model::{JobId, RunRequest};

use crate::commands::output::CommandOutput;
use crate::render::{Page, Span, Tone, plural};

/// The number of jobs that are shown.
const SHOWN_JOBS: usize = 5;

/// The first jobs that would run.
#[derive(Serialize)]
pub struct JobPreview {
    /// The number of jobs.
    jobs: usize,
    /// The number of jobs that would run.
    to_run: usize,
    /// The first of them.
    first: Vec<PreviewedJob>,
    /// Lines or files that would be left out.
    skipped: usize,
}

#[derive(Serialize)]
struct PreviewedJob {
    id: JobId,
    request: RunRequest,
}

impl JobPreview {
    pub fn new(jobs: &JobList, plan: &Plan) -> Self {
        let first = plan
            .pending
            .iter()
            .take(SHOWN_JOBS)
            .filter_map(|index| jobs.get(*index));
        Self {
            jobs: jobs.len(),
            to_run: plan.pending.len(),
            first: first
                .map(|job| PreviewedJob {
                    id: job.id,
                    request: job.request,
                })
                .collect(),
            skipped: jobs.skipped().len(),
        }
    }
}

impl CommandOutput for JobPreview {
    fn render(&self, page: &mut Page) {
        for job in &self.first {
            page.line(&[Span::new(Tone::Name, job.id.as_str())]);
            let request = &job.request;
            let words = request.script.iter().chain(&request.args).chain(&request.argv);
            let words: Vec<String> = words.map(|word| format!("{word:?}")).collect();
            let command = request.command.clone().unwrap_or_else(|| words.join(" "));
            page.labelled(2, Span::new(Tone::Dim, "command"), 11, Tone::Plain, &command);
            for (name, value) in &request.env {
                page.labelled(
                    2,
                    Span::new(Tone::Dim, "env"),
                    11,
                    Tone::Plain,
                    &format!("{name}={value:?}"),
                );
            }
            for input in &request.inputs {
                page.labelled(2, Span::new(Tone::Dim, "input"), 11, Tone::Plain, &input.from);
            }
        }
        page.blank_line();
        let done = self.jobs - self.to_run;
        let mut text = format!("{} of {} would run", self.to_run, plural(self.jobs, "job"));
        if done > 0 {
            text.push_str(&format!("; {done} have results"));
        }
        if self.skipped > 0 {
            text.push_str(&format!("; {} left out", plural(self.skipped, "bad line")));
        }
        page.line(&[Span::plain(text)]);
    }
}
