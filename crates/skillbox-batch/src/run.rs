//! Runs a batch: the jobs without a durable result, on several threads, with one thread that makes results durable.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use skillbox_executor::EventSink;
use skillbox_model::{Digest, Enforcement, ErrorCode, LayerState, RunReport, RunRequest};
use skillbox_repository::Catalog;
use skillbox_runtime::{ExistingFiles, ExportTarget, RequestDigest, RequestDigests, RunContext, RunError, new_run_id};

use crate::batch::BatchRun;
use crate::cause::FailureCause;
use crate::error::BatchError;
use crate::halt::HaltReason;
use crate::job_list::Job;
use crate::outcome::JobOutcome;
use crate::plan::Plan;
use crate::progress::add_one;
use crate::result_directory::{ExistingResults, ResultDirectory, to_json};
use crate::result_line::{JobStatus, ResultLine};
use crate::result_writer::ResultWriter;
use crate::schedule::{Attempt, Next, Schedule};
use crate::summary::Summary;

/// Finished jobs that may wait for the disk. Together with the running jobs, they are what a crash loses.
const MAX_WAITING_RESULTS: usize = 128;
/// How often an idle worker looks whether a signal arrived.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(100);

/// A batch that is over.
#[derive(Debug)]
pub struct CompletedBatch {
    /// The summary.
    pub summary: Summary,
    /// Why the summary could not be written to the directory.
    pub summary_error: Option<BatchError>,
    /// The profile and the enforcement of the first run without every layer that its profile prefers.
    pub weaker_run: Option<(String, Enforcement)>,
}

/// Runs the jobs of a plan and writes their results.
pub fn run_batch(
    batch: BatchRun<'_>,
    directory: &ResultDirectory,
    existing: &ExistingResults,
    plan: Plan,
) -> Result<CompletedBatch, BatchError> {
    let begin = Instant::now();
    let total = batch.jobs.len();
    let resumed = total - plan.pending.len();
    batch.progress.total.store(total, Ordering::Relaxed);
    batch.progress.resumed.store(resumed, Ordering::Relaxed);
    // After a cancellation, keys could not be computed, and no result may be dropped.
    if (!plan.superseded.is_empty() || existing.damaged_lines > 0) && !batch.cancel.is_cancelled() {
        directory.retain_results(&|head| !plan.superseded.contains(&head.id))?;
    }
    let writer = directory.writer()?;
    let workers = batch.options.jobs.get().min(plan.pending.len());
    let shared = Shared {
        batch,
        directory,
        digests: RequestDigests::new(batch.runtime),
        catalog: batch.runtime.catalog(),
        state: Mutex::new(State {
            schedule: Schedule::new(plan.pending),
            failed: 0,
            halted: None,
            weaker_run: None,
        }),
        changed: Condvar::new(),
    };
    let (sender, receiver) = sync_channel(MAX_WAITING_RESULTS);
    thread::scope(|scope| -> Result<(), BatchError> {
        let shared = &shared;
        spawn(scope, move || shared.write_results(writer, &receiver))?;
        for _ in 0..workers {
            let sender = sender.clone();
            let started = spawn(scope, move || shared.run_jobs(&sender));
            if started.is_err() {
                shared.state().schedule.stop();
            }
            started?;
        }
        drop(sender);
        Ok(())
    })?;
    let (halted, weaker_run) = {
        let mut state = shared.state();
        (state.halted.take(), state.weaker_run.take())
    };
    let (summary, failed_text) = Summary::from_results(directory.path(), total, &plan.unlisted)?;
    let summary = Summary {
        halted,
        resumed,
        executed: batch.progress.ok() + batch.progress.failed(),
        retries: batch.progress.retries(),
        duration_ms: u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX),
        ..summary
    };
    let summary_error = directory.write_summary(&to_json(&summary), &failed_text).err();
    Ok(CompletedBatch {
        summary,
        summary_error,
        weaker_run,
    })
}

fn spawn<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    work: impl FnOnce() + Send + 'scope,
) -> Result<(), BatchError> {
    let started = thread::Builder::new()
        .name("batch".to_owned())
        .spawn_scoped(scope, work);
    started.map(drop).map_err(BatchError::Threads)
}

/// What the threads of a batch share.
struct Shared<'a> {
    batch: BatchRun<'a>,
    directory: &'a ResultDirectory,
    digests: RequestDigests<'a>,
    /// The catalog of the start. The report of each run says which skill it was.
    catalog: Catalog,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    schedule: Schedule,
    /// Failed jobs, whether their results are durable already or not.
    failed: usize,
    halted: Option<HaltReason>,
    weaker_run: Option<(String, Enforcement)>,
}

/// A result on its way to the disk.
struct FinishedJob {
    line: Vec<u8>,
    has_files: bool,
    status: JobStatus,
}

/// How one attempt went on.
enum AttemptEnd {
    /// It has a result, under this key.
    Result(Box<JobOutcome>, Option<Digest>),
    /// It was killed because the batch stops, and has no result.
    Killed,
    /// The host failed, not the job.
    HostFailure(HaltReason),
}

impl Shared<'_> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The work of one thread.
    fn run_jobs(&self, results: &SyncSender<FinishedJob>) {
        while let Some(attempt) = self.next_attempt() {
            add_one(&self.batch.progress.running);
            self.run_attempt(attempt, results);
            self.batch.progress.running.fetch_sub(1, Ordering::Relaxed);
            self.changed.notify_all();
        }
    }

    fn next_attempt(&self) -> Option<Attempt> {
        let mut state = self.state();
        loop {
            if self.batch.cancel.is_cancelled() {
                state.halt(HaltReason::Interrupted);
            }
            let now = Instant::now();
            let timeout = match state.schedule.next(now) {
                Next::Run(attempt) => return Some(attempt),
                Next::Finished => return None,
                Next::Wait(None) => SIGNAL_INTERVAL,
                Next::Wait(Some(due)) => due.saturating_duration_since(now).min(SIGNAL_INTERVAL),
            };
            let waited = self.changed.wait_timeout(state, timeout);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn run_attempt(&self, attempt: Attempt, results: &SyncSender<FinishedJob>) {
        let Some(job) = self.batch.jobs.get(attempt.index) else {
            self.state().schedule.end();
            return;
        };
        let id = job.id.clone();
        let (outcome, key) = match self.execute(job) {
            AttemptEnd::Result(outcome, key) => (outcome, key),
            AttemptEnd::Killed => return self.state().schedule.end(),
            AttemptEnd::HostFailure(reason) => {
                self.halt_now(reason);
                return self.state().schedule.end();
            }
        };
        if let Some((cause, _)) = &outcome.failure
            && let Some(delay) = self.batch.options.retry.delay(*cause, attempt.number)
        {
            let mut state = self.state();
            if !state.schedule.is_stopped() {
                add_one(&self.batch.progress.retries);
                return state.schedule.retry(attempt, Instant::now() + delay);
            }
        }
        let line = ResultLine {
            id: &id,
            key,
            status: outcome.status(),
            cause: outcome.failure.as_ref().map(|(cause, _)| *cause),
            reason: outcome.failure.as_ref().map(|(_, reason)| reason.as_str()),
            attempts: attempt.number,
            report: outcome.report.as_ref(),
            error: outcome.error.as_ref(),
        };
        let finished = FinishedJob {
            line: line.to_bytes(),
            has_files: self.directory.has_job_files(&id),
            status: outcome.status(),
        };
        // If the writer has stopped, the batch is halted and this job has no result.
        let _writer_stopped = results.send(finished);
        self.count_end(outcome.status());
    }

    fn count_end(&self, status: JobStatus) {
        let mut state = self.state();
        state.schedule.end();
        if status == JobStatus::Ok {
            return;
        }
        state.failed += 1;
        let rule = self.batch.options.halt;
        let failed = state.failed;
        if rule.is_reached(failed, self.batch.jobs.len()) {
            state.halt(HaltReason::Failures { failed });
            if rule.kills_running() {
                self.batch.cancel.cancel();
            }
        }
    }

    /// Starts no further job and kills the running ones.
    fn halt_now(&self, reason: HaltReason) {
        self.state().halt(reason);
        self.batch.cancel.cancel();
    }

    /// Runs one attempt, with its files written to the result directory.
    fn execute(&self, job: Job) -> AttemptEnd {
        let request = self.batch.prepare(job.request);
        let digest = match self.digests.digest(&request, &self.catalog, self.batch.cancel) {
            Ok(digest) => digest,
            Err(error) => return self.end_with_error(&error, None),
        };
        if let Err(error) = self.directory.remove_job_files(&job.id) {
            return storage_failure(format!("cannot remove old files of the job {}: {error}", job.id));
        }
        let context = RunContext {
            session: None,
            events: EventSink::silent(),
            cancel: self.batch.cancel.clone(),
            export: Some(ExportTarget {
                directory: self.directory.job_directory(&job.id),
                existing_files: ExistingFiles::Replace,
            }),
            keep_files: false,
            origin: Default::default(),
        };
        let completed = match self.batch.runtime.run_with_id(new_run_id(), &request, context) {
            Ok(completed) => completed,
            Err(error) => return self.end_with_error(&error, Some(digest.key)),
        };
        if let Some(failure) = completed.export_failures.first()
            && self.directory.is_disk_full()
        {
            return storage_failure(failure.clone());
        }
        let report = completed.report;
        self.note_weaker_run(&report);
        let outcome = Box::new(JobOutcome::from_report(report, &completed.export_failures));
        if matches!(outcome.failure, Some((FailureCause::Cancelled, _))) && self.batch.cancel.is_cancelled() {
            return AttemptEnd::Killed;
        }
        let ran = outcome.report.as_ref().map(|report| report.skill_digest);
        let key = self.key_of_run(&request, digest, ran);
        AttemptEnd::Result(outcome, key)
    }

    fn note_weaker_run(&self, report: &RunReport) {
        let mut layers = report.enforcement.layers.values();
        let is_weaker = layers.any(|state| matches!(state, LayerState::Absent { .. } | LayerState::Partial { .. }));
        if is_weaker {
            let noted = &mut self.state().weaker_run;
            noted.get_or_insert_with(|| (report.profile.clone(), report.enforcement.clone()));
        }
    }

    /// The key under which a result is valid. If the skill was changed while the batch ran, the run used its new version;
    /// without a key, the next `--resume` runs the job again.
    fn key_of_run(&self, request: &RunRequest, digest: RequestDigest, ran: Option<Digest>) -> Option<Digest> {
        if ran == Some(digest.skill) {
            return Some(digest.key);
        }
        let catalog = self.batch.runtime.catalog();
        let current = self.digests.digest(request, &catalog, self.batch.cancel).ok()?;
        (Some(current.skill) == ran).then_some(current.key)
    }

    fn end_with_error(&self, error: &RunError, key: Option<Digest>) -> AttemptEnd {
        match error.code() {
            ErrorCode::Cancelled if self.batch.cancel.is_cancelled() => AttemptEnd::Killed,
            ErrorCode::Storage => storage_failure(error.body().message),
            _ if !self.batch.runtime.is_healthy() => AttemptEnd::HostFailure(HaltReason::ExecutorLost),
            _ => AttemptEnd::Result(Box::new(JobOutcome::from_error(error)), key),
        }
    }

    /// The work of the thread that makes results durable: whatever is waiting goes to the disk together.
    fn write_results(&self, mut writer: ResultWriter, results: &Receiver<FinishedJob>) {
        let mut lines = Vec::new();
        while let Ok(first) = results.recv() {
            lines.clear();
            let (mut have_files, mut ok, mut failed) = (false, 0, 0);
            for finished in std::iter::once(first).chain(results.try_iter().take(MAX_WAITING_RESULTS)) {
                lines.extend_from_slice(&finished.line);
                have_files |= finished.has_files;
                match finished.status {
                    JobStatus::Ok => ok += 1,
                    JobStatus::Failed => failed += 1,
                }
            }
            if let Err(error) = writer.append(&lines, have_files) {
                self.halt_now(HaltReason::Storage {
                    message: format!("cannot write the results: {error}"),
                });
                return;
            }
            self.batch.progress.ok.fetch_add(ok, Ordering::Relaxed);
            self.batch.progress.failed.fetch_add(failed, Ordering::Relaxed);
        }
    }
}

impl State {
    /// Starts no further job. The first reason counts.
    fn halt(&mut self, reason: HaltReason) {
        self.schedule.stop();
        self.halted.get_or_insert(reason);
    }
}

fn storage_failure(message: String) -> AttemptEnd {
    AttemptEnd::HostFailure(HaltReason::Storage { message })
}
