//! The summary of a batch, computed from its results.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use skillbox_model::JobId;

use crate::cause::FailureCause;
use crate::error::BatchError;
use crate::halt::HaltReason;
use crate::result_directory::BatchRecord;
use crate::result_directory::{for_each_line, is_locked, require_record};
use crate::result_line::{JobStatus, ResultHead};

/// How many of the slowest jobs are listed.
const LISTED_SLOW_JOBS: usize = 5;
/// How many failed jobs are listed; `failed.txt` has all of them.
const LISTED_FAILED_JOBS: usize = 100;

/// The state of a batch.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// The number of jobs.
    pub jobs: usize,
    /// Jobs that ended well.
    pub ok: usize,
    /// Jobs that failed.
    pub failed: usize,
    /// Jobs without a result.
    pub not_run: usize,
    /// Results of jobs that are no longer in the list.
    pub unlisted: usize,
    /// Why the batch stopped early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub halted: Option<HaltReason>,
    /// Jobs whose results are older than this invocation.
    pub resumed: usize,
    /// Jobs that this invocation ran.
    pub executed: usize,
    /// Further attempts of this invocation after a failure.
    pub retries: usize,
    /// The duration of this invocation.
    pub duration_ms: u64,
    /// The number of failed jobs by cause.
    pub causes: BTreeMap<FailureCause, usize>,
    /// The jobs that took longest.
    pub slowest: Vec<SlowJob>,
    /// The first failed jobs.
    pub failed_jobs: Vec<FailedJob>,
}

/// A job and its duration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SlowJob {
    /// The duration of its last attempt.
    pub duration_ms: u64,
    /// The job.
    pub id: JobId,
}

/// A failed job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedJob {
    /// The job.
    pub id: JobId,
    /// Why it failed.
    pub cause: FailureCause,
    /// Why it failed, in one line.
    pub reason: String,
}

impl Summary {
    /// The state of the batch in a directory, which may still run, and whether a process works on it.
    pub fn of_directory(path: &Path) -> Result<(BatchRecord, Self, bool), BatchError> {
        let record = require_record(path)?;
        let is_running = is_locked(path);
        let (summary, _) = Self::from_results(path, record.jobs, &HashSet::new())?;
        Ok((record, summary, is_running))
    }

    /// Reads all results. Returns the text of `failed.txt` too: id, cause and reason of each failed job.
    pub(crate) fn from_results(
        path: &Path,
        jobs: usize,
        unlisted: &HashSet<JobId>,
    ) -> Result<(Self, String), BatchError> {
        let mut summary = Self {
            jobs,
            ..Self::default()
        };
        let mut failed_text = String::new();
        let mut slowest = BinaryHeap::new();
        for_each_line(path, &mut |_, head| {
            match head {
                Some(head) if unlisted.contains(&head.id) => summary.unlisted += 1,
                Some(head) => summary.add(head, &mut slowest, &mut failed_text),
                None => {}
            }
            Ok(())
        })?;
        summary.slowest = slowest.into_sorted_vec().into_iter().map(|Reverse(job)| job).collect();
        summary.not_run = jobs.saturating_sub(summary.ok + summary.failed);
        Ok((summary, failed_text))
    }

    pub(crate) fn add(
        &mut self,
        head: ResultHead,
        slowest: &mut BinaryHeap<Reverse<SlowJob>>,
        failed_text: &mut String,
    ) {
        if let Some(duration_ms) = head.duration_ms {
            slowest.push(Reverse(SlowJob {
                duration_ms,
                id: head.id.clone(),
            }));
            if slowest.len() > LISTED_SLOW_JOBS {
                slowest.pop();
            }
        }
        if head.status == JobStatus::Ok {
            self.ok += 1;
            return;
        }
        self.failed += 1;
        let cause = head.cause.unwrap_or(FailureCause::Lost);
        let reason = head.reason.unwrap_or_default();
        *self.causes.entry(cause).or_default() += 1;
        failed_text.push_str(&format!("{}\t{cause}\t{reason}\n", head.id));
        if self.failed_jobs.len() < LISTED_FAILED_JOBS {
            self.failed_jobs.push(FailedJob {
                id: head.id,
                cause,
                reason,
            });
        }
    }
}
