//! The state of a batch as any host sees it, and its cancellation.

use serde::Serialize;

use super::batch_store::BatchStore;
use super::connection::Queue;
use super::error::QueueError;
use super::job_stream;
use super::message::ListedJob;
use super::result_files::for_each_result;
use super::worker::presence::{self, PresentWorker};
use crate::summary::Summary;

/// The state of a batch on a queue.
#[derive(Debug, Serialize)]
pub struct BatchState {
    /// The batch for people.
    pub description: String,
    /// Whether its newest submission was cancelled.
    pub cancelled: bool,
    /// Jobs that are queued or running; none if the queue has no stream for the batch.
    pub queued: Option<u64>,
    /// The workers that are alive. They may work for other batches.
    pub workers: Vec<PresentWorker>,
    /// The results so far.
    #[serde(flatten)]
    pub summary: Summary,
}

/// Reads the state of a batch from the store and the queue.
pub fn read_state(queue: &Queue, store: &BatchStore) -> Result<BatchState, QueueError> {
    let record = store.record()?;
    let mut summary = Summary::default();
    let mut slowest = std::collections::BinaryHeap::new();
    let mut cancelled = false;
    if let Some((number, submission)) = store.newest_submission()? {
        cancelled = store.is_cancelled(number)?;
        let finished = store.finished_jobs()?;
        let jobs = store.listed_jobs(&submission)?;
        summary.jobs = jobs.len();
        let jobs: Vec<ListedJob> = jobs.into_iter().filter(|job| finished.contains(job)).collect();
        for_each_result(store, &jobs, &mut |_, result| {
            summary.add(result.head, &mut slowest, &mut String::new());
            Ok(())
        })?;
    } else {
        summary.jobs = record.jobs;
    }
    summary.slowest = slowest.into_sorted_vec().into_iter().map(|job| job.0).collect();
    summary.not_run = summary.jobs.saturating_sub(summary.ok + summary.failed);
    Ok(BatchState {
        description: record.description,
        cancelled,
        queued: queue.wait(job_stream::queued_jobs(queue, store.name()))?,
        workers: queue.wait(presence::read_all(queue)),
        summary,
    })
}

/// Cancels a batch: queued jobs never run, running ones are killed and have no result. Returns false if all jobs had
/// results, or the batch was cancelled before.
pub fn cancel_batch(queue: &Queue, store: &BatchStore) -> Result<bool, QueueError> {
    store.record()?;
    let Some((number, submission)) = store.newest_submission()? else {
        return Ok(false);
    };
    let was_cancelled = store.is_cancelled(number)?;
    let finished = store.finished_jobs()?;
    let is_complete = store.listed_jobs(&submission)?.iter().all(|job| finished.contains(job));
    cancel_submission(queue, store, number, "cancelled", true)?;
    Ok(!was_cancelled && !is_complete)
}

/// Records the cancellation first: a worker that hears nothing finds it before it runs a job.
pub(super) fn cancel_submission(
    queue: &Queue,
    store: &BatchStore,
    number: u64,
    reason: &str,
    kill_running: bool,
) -> Result<(), QueueError> {
    store.cancel(number, reason)?;
    queue.wait(job_stream::delete(queue, store.name()))?;
    match kill_running {
        true => queue.wait(job_stream::publish_cancellation(queue, store.name())),
        false => Ok(()),
    }
}
