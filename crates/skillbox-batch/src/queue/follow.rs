//! Follows a submitted batch until all its jobs have results, and brings them here.

use std::collections::{BinaryHeap, HashSet};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::batch_store::BatchStore;
use super::connection::Queue;
use super::error::QueueError;
use super::job_stream;
use super::message::ListedJob;
use super::result_files::{copy_files, for_each_result, result_line};
use super::state::cancel_submission;
use super::submit::SubmittedBatch;
use super::worker::presence;
use crate::batch::BatchRun;
use crate::halt::HaltReason;
use crate::progress::add_one;
use crate::result_directory::{ExistingResults, ResultDirectory, to_json};
use crate::result_line::JobStatus;
use crate::result_writer::ResultWriter;
use crate::summary::Summary;

/// The shortest time between two looks at the store.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The time between two looks is longer than a look by this factor.
const POLL_FACTOR: u32 = 4;
/// How often the workers are counted.
const PRESENCE_INTERVAL: Duration = Duration::from_secs(2);
/// How often it is checked that the queue still has the jobs without results.
const QUEUE_INTERVAL: Duration = Duration::from_secs(5);
/// How many checks in a row must find that the queue has lost jobs.
const LOST_CHECKS: u32 = 3;
/// How long the store may fail before the batch is left alone.
const STORE_DEADLINE: Duration = Duration::from_secs(120);
const STORE_RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// How often a waiting thread looks whether a signal arrived.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(100);

/// A batch on the queue that is over, or that goes on without this process.
#[derive(Debug)]
pub struct FollowedBatch {
    /// The summary.
    pub summary: Summary,
    /// Why the summary could not be written to the directory.
    pub summary_error: Option<crate::BatchError>,
}

/// Waits for the results of a submitted batch. With a directory, they and their files are written to it.
pub fn follow(
    batch: BatchRun<'_>,
    queue: &Queue,
    store: &BatchStore,
    submitted: &SubmittedBatch,
    output: Option<(&ResultDirectory, &ExistingResults)>,
) -> Result<FollowedBatch, QueueError> {
    let begin = Instant::now();
    batch.progress.total.store(submitted.jobs.len(), Ordering::Relaxed);
    batch.progress.resumed.store(submitted.resumed, Ordering::Relaxed);
    let mut follower = Follower::new(batch, store, submitted, output)?;
    let halted = follower.run(queue)?;
    let (summary, failed_text) = match output {
        None => (follower.summary, String::new()),
        Some((directory, _)) => {
            Summary::from_results(directory.path(), submitted.jobs.len(), &HashSet::new()).map_err(QueueError::from)?
        }
    };
    let summary = Summary {
        jobs: submitted.jobs.len(),
        not_run: submitted.jobs.len().saturating_sub(summary.ok + summary.failed),
        halted,
        resumed: submitted.resumed,
        executed: batch.progress.ok() + batch.progress.failed(),
        duration_ms: u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX),
        ..summary
    };
    let written = output.map(|(directory, _)| directory.write_summary(&to_json(&summary), &failed_text));
    Ok(FollowedBatch {
        summary,
        summary_error: written.and_then(Result::err),
    })
}

struct Follower<'a> {
    batch: BatchRun<'a>,
    store: &'a BatchStore,
    submitted: &'a SubmittedBatch,
    output: Option<(&'a ResultDirectory, ResultWriter)>,
    /// The jobs whose results are not here yet.
    missing: HashSet<ListedJob>,
    summary: Summary,
    slowest: BinaryHeap<std::cmp::Reverse<crate::summary::SlowJob>>,
}

impl<'a> Follower<'a> {
    fn new(
        batch: BatchRun<'a>,
        store: &'a BatchStore,
        submitted: &'a SubmittedBatch,
        output: Option<(&'a ResultDirectory, &ExistingResults)>,
    ) -> Result<Self, QueueError> {
        let mut missing: HashSet<ListedJob> = submitted.jobs.iter().cloned().collect();
        let output = match output {
            None => None,
            Some((directory, existing)) => {
                // Results here count if the store has them too: a failed job that runs again has none there.
                let is_current = |id: &skillbox_model::JobId, key: Option<skillbox_model::Digest>| {
                    let job = key.map(|key| ListedJob { id: id.clone(), key });
                    job.filter(|job| missing.contains(job) && submitted.finished.contains(job))
                };
                let here = existing.by_id.iter().filter_map(|(id, (key, _))| is_current(id, *key));
                let here: HashSet<ListedJob> = here.collect();
                if here.len() < existing.len() || existing.damaged_lines > 0 {
                    directory.retain_results(&|head| {
                        let job = head.key.map(|key| ListedJob {
                            id: head.id.clone(),
                            key,
                        });
                        job.is_some_and(|job| here.contains(&job))
                    })?;
                }
                missing.retain(|job| !here.contains(job));
                Some((directory, directory.writer()?))
            }
        };
        Ok(Self {
            batch,
            store,
            submitted,
            output,
            missing,
            summary: Summary::default(),
            slowest: BinaryHeap::new(),
        })
    }

    fn run(&mut self, queue: &Queue) -> Result<Option<HaltReason>, QueueError> {
        let mut last_good = Instant::now();
        let mut last_presence: Option<Instant> = None;
        let mut last_queue = Instant::now();
        let mut lost_checks = 0;
        loop {
            let begin = Instant::now();
            match self.fetch_new_results() {
                Ok(()) => last_good = Instant::now(),
                Err(QueueError::Store(error)) if last_good.elapsed() < STORE_DEADLINE => {
                    tracing::warn!(%error, "the results cannot be read yet");
                    std::thread::sleep(STORE_RETRY_INTERVAL);
                }
                Err(error) => return Err(error),
            }
            if self.missing.is_empty() {
                // Everything is recorded; a stream that stays is empty and harmless.
                if let Err(error) = queue.wait(job_stream::delete(queue, self.store.name())) {
                    tracing::warn!(%error, "the empty stream of the batch stays");
                }
                return Ok(None);
            }
            if self.batch.cancel.is_cancelled() {
                return Ok(Some(HaltReason::Interrupted));
            }
            if let Some(reason) = self.halt_reason(queue)? {
                return Ok(Some(reason));
            }
            if last_presence.is_none_or(|last| last.elapsed() > PRESENCE_INTERVAL) {
                last_presence = Some(Instant::now());
                let workers = queue.wait(presence::read_all(queue));
                let running = workers.iter().map(|worker| worker.running).sum();
                self.batch.progress.running.store(running, Ordering::Relaxed);
            }
            if last_queue.elapsed() > QUEUE_INTERVAL && queue.is_connected() {
                last_queue = Instant::now();
                let queued = queue.wait(job_stream::queued_jobs(queue, self.store.name()));
                lost_checks = match queued {
                    Ok(None | Some(0)) => lost_checks + 1,
                    _ => 0,
                };
                if lost_checks > LOST_CHECKS {
                    return Err(QueueError::Request {
                        action: "find jobs without results",
                        message: format!(
                            "it has lost {} jobs of the batch {}; run the command again with --resume",
                            self.missing.len(),
                            self.store.name()
                        ),
                    });
                }
            }
            self.pause(POLL_INTERVAL.max(begin.elapsed() * POLL_FACTOR));
        }
    }

    fn pause(&self, time: Duration) {
        let due = Instant::now() + time;
        while Instant::now() < due && !self.batch.cancel.is_cancelled() {
            std::thread::sleep(SIGNAL_INTERVAL.min(time));
        }
    }

    /// Whether the batch was cancelled, by somebody else or because its rule says so.
    fn halt_reason(&self, queue: &Queue) -> Result<Option<HaltReason>, QueueError> {
        let rule = self.batch.options.halt;
        if rule.is_reached(self.summary.failed, self.submitted.jobs.len()) {
            let kill = rule.kills_running();
            cancel_submission(queue, self.store, self.submitted.number, "--halt", kill)?;
            return Ok(Some(HaltReason::Failures {
                failed: self.summary.failed,
            }));
        }
        match self.store.is_cancelled(self.submitted.number) {
            Ok(true) => Ok(Some(HaltReason::Cancelled)),
            // The next look at the results reports a store that fails.
            Ok(false) | Err(_) => Ok(None),
        }
    }

    fn fetch_new_results(&mut self) -> Result<(), QueueError> {
        let finished = self.store.finished_jobs()?;
        let new: Vec<ListedJob> = self
            .missing
            .iter()
            .filter(|job| finished.contains(job))
            .cloned()
            .collect();
        let Self {
            batch,
            store,
            submitted,
            output,
            missing,
            summary,
            slowest,
        } = self;
        for_each_result(store, &new, &mut |job, result| {
            if let Some((directory, writer)) = output {
                let has_files = copy_files(store, directory, &job.id, &result.manifest)?;
                let written = writer.append(&result_line(&result.manifest), has_files);
                written.map_err(|source| QueueError::Io {
                    action: "write the results in",
                    path: directory.path().to_owned(),
                    source,
                })?;
            }
            missing.remove(job);
            if !submitted.finished.contains(job) {
                match result.head.status {
                    JobStatus::Ok => add_one(&batch.progress.ok),
                    JobStatus::Failed => add_one(&batch.progress.failed),
                }
            }
            summary.add(result.head, slowest, &mut String::new());
            Ok(())
        })?;
        self.summary.slowest = self
            .slowest
            .clone()
            .into_sorted_vec()
            .into_iter()
            .map(|job| job.0)
            .collect();
        Ok(())
    }
}
