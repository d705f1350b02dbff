//! A batch: its jobs, how they run, and what counts and cancels them.

use std::num::NonZero;

use skillbox_executor::CancelToken;
use skillbox_model::RunRequest;
use skillbox_runtime::Runtime;

use crate::halt::HaltRule;
use crate::job_list::JobList;
use crate::progress::Progress;
use crate::retry::RetryPolicy;

/// How a batch runs.
#[derive(Clone, Debug)]
pub struct BatchOptions {
    /// The number of jobs that run at the same time.
    pub jobs: NonZero<usize>,
    /// Which failed jobs run again.
    pub retry: RetryPolicy,
    /// When the batch stops early.
    pub halt: HaltRule,
    /// The timeout of jobs that set none, in seconds.
    pub timeout: Option<f64>,
    /// Whether jobs with a failed result run again.
    pub rerun_failed: bool,
}

/// A batch to run.
#[derive(Clone, Copy, Debug)]
pub struct BatchRun<'a> {
    /// Runs the jobs.
    pub runtime: &'a Runtime,
    /// The jobs.
    pub jobs: &'a JobList,
    /// How they run.
    pub options: &'a BatchOptions,
    /// Counts them.
    pub progress: &'a Progress,
    /// Stops the batch and kills running jobs.
    pub cancel: &'a CancelToken,
}

impl BatchRun<'_> {
    /// The request of a job as it runs: files go to the result directory, not into the report.
    pub(crate) fn prepare(&self, request: RunRequest) -> RunRequest {
        RunRequest {
            timeout: request.timeout.or(self.options.timeout),
            omit_inline_content: true,
            ..request
        }
    }
}
