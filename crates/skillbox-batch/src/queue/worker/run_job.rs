//! Runs one job from the queue: look for its result, run it, record its result, answer.

use std::collections::HashMap;
use std::io::{Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use skillbox_artifacts::Store;
use skillbox_executor::{CancelToken, EventSink};
use skillbox_model::{ErrorBody, ErrorCode, OutputSpec, RunReport, RunRequest};
use skillbox_runtime::{CompletedRun, RunContext, RunError, Runtime, new_run_id};

use super::fetched_inputs::{FetchedFile, FetchedInputs};
use super::fetched_skills::FetchedSkills;
use super::held_jobs::{Answer, HeldJob};
use crate::cause::FailureCause;
use crate::outcome::JobOutcome;
use crate::queue::batch_name::BatchName;
use crate::queue::batch_store::BatchStore;
use crate::queue::error::QueueError;
use crate::queue::message::{FORMAT_VERSION, Manifest, ManifestFile, Submission};
use crate::result_line::ResultLine;

/// How often a job may be started again because its worker was lost, besides its retries. A job that kills its worker
/// would otherwise kill every worker.
const MAX_LOST_STARTS: u32 = 4;
/// The delay before a job that this worker cannot run now is delivered again.
const GIVE_BACK_DELAY: Duration = Duration::from_secs(5);
/// How long a result is written again while the store fails.
const WRITE_DEADLINE: Duration = Duration::from_secs(60);
const WRITE_INTERVAL: Duration = Duration::from_millis(500);
/// The number of submissions that are kept in memory.
const MAX_KNOWN_SUBMISSIONS: usize = 64;
/// How often a thread that waits for a retry looks whether the batch was cancelled.
const CANCEL_INTERVAL: Duration = Duration::from_millis(100);

/// What the threads of a worker share.
pub(super) struct JobRunner<'a> {
    pub runtime: &'a Runtime,
    pub store: &'a Store,
    pub worker: String,
    pub skills: FetchedSkills,
    pub inputs: Arc<FetchedInputs>,
    pub submissions: Mutex<HashMap<(BatchName, u64), Arc<Submission>>>,
}

/// The end of one attempt.
enum AttemptEnd {
    Result(Box<JobOutcome>, Vec<ManifestFile>),
    /// The batch was cancelled.
    Killed,
    /// This host failed, not the job.
    HostFailure(String),
}

impl JobRunner<'_> {
    /// Runs a job, unless it has a result already, and says how the queue is answered.
    pub fn run(&self, held: &HeldJob) -> Answer {
        match self.try_run(held) {
            Ok(answer) => answer,
            Err(error) => {
                tracing::warn!(batch = %held.batch, job = %held.job.id, %error, "a job goes back to the queue");
                Answer::GiveBack(GIVE_BACK_DELAY)
            }
        }
    }

    fn try_run(&self, held: &HeldJob) -> Result<Answer, QueueError> {
        let store = BatchStore::new(self.store, &held.batch);
        let job = held.job.job();
        if store.has_result(&job)? {
            return Ok(Answer::Done);
        }
        let submission = self.submission(&store, held.job.submission)?;
        if store.is_cancelled(held.job.submission)? {
            return Ok(Answer::Drop);
        }
        let max_starts = submission.retry.retries.saturating_add(1 + MAX_LOST_STARTS);
        if held.deliveries > 1 && store.record_start(&job, max_starts)? > max_starts {
            let outcome = lost_job(max_starts);
            return self.record(&store, held, &outcome, max_starts, Vec::new());
        }
        let mut attempt = 1;
        loop {
            match self.attempt(held, &store, &submission)? {
                AttemptEnd::Killed => return Ok(Answer::Drop),
                AttemptEnd::HostFailure(message) => {
                    tracing::warn!(batch = %held.batch, job = %held.job.id, message, "this host cannot run a job");
                    return Ok(Answer::GiveBack(GIVE_BACK_DELAY));
                }
                AttemptEnd::Result(outcome, files) => {
                    let failure = outcome.failure.as_ref();
                    let delay = failure.and_then(|(cause, _)| submission.retry.delay(*cause, attempt));
                    match delay {
                        Some(delay) if wait_unless_cancelled(delay, &held.cancel) => attempt += 1,
                        Some(_) => return Ok(Answer::Drop),
                        None => return self.record(&store, held, &outcome, attempt, files),
                    }
                }
            }
        }
    }

    fn submission(&self, store: &BatchStore, number: u64) -> Result<Arc<Submission>, QueueError> {
        let key = (store.name().clone(), number);
        let known = self
            .submissions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key)
            .cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let read = Arc::new(store.submission(number)?);
        let mut submissions = self.submissions.lock().unwrap_or_else(PoisonError::into_inner);
        if submissions.len() >= MAX_KNOWN_SUBMISSIONS {
            submissions.clear();
        }
        submissions.insert(key, Arc::clone(&read));
        Ok(read)
    }

    fn attempt(&self, held: &HeldJob, store: &BatchStore, submission: &Submission) -> Result<AttemptEnd, QueueError> {
        let (request, _files) = self.local_request(held, store)?;
        let runtime = match self.skills.runtime_for(self.runtime, store, submission, &request) {
            Ok(runtime) => runtime,
            // Another delivery would not help.
            Err(error @ QueueError::SkillContent { .. }) => {
                return Ok(AttemptEnd::Result(refused(error.body()).into(), Vec::new()));
            }
            Err(error) => return Err(error),
        };
        let context = RunContext {
            session: None,
            events: EventSink::silent(),
            cancel: held.cancel.clone(),
            export: None,
            keep_files: true,
            origin: Default::default(),
        };
        let completed = match runtime.run_with_id(new_run_id(), &request, context) {
            Ok(completed) => completed,
            Err(error) => return Ok(self.end_with_error(&error, &held.cancel)),
        };
        let wanted = submission
            .skills
            .iter()
            .find(|(name, _)| name.as_str() == request.skill);
        if wanted.is_none_or(|(_, content)| content.digest != completed.report.skill_digest) {
            let message = format!("the skill {} changed on this host while it ran", request.skill);
            return Ok(AttemptEnd::HostFailure(message));
        }
        let CompletedRun { report, files, .. } = completed;
        let (stored, failures) = store_files(store, files)?;
        let outcome = JobOutcome::from_report(with_references(report, held), &failures);
        if matches!(outcome.failure, Some((FailureCause::Cancelled, _))) && held.cancel.is_cancelled() {
            return Ok(AttemptEnd::Killed);
        }
        Ok(AttemptEnd::Result(outcome.into(), stored))
    }

    /// The request with its content as files of this host. The files stay as long as the second value.
    fn local_request(&self, held: &HeldJob, store: &BatchStore) -> Result<(RunRequest, Vec<FetchedFile>), QueueError> {
        let mut request = held.job.request.clone();
        let mut files = Vec::new();
        for content in &held.job.contents {
            let file = self.inputs.fetch(store, content)?;
            let input = request.inputs.get_mut(content.index);
            let input = input.ok_or_else(|| QueueError::Record(format!("the job {} lacks an input", held.job.id)))?;
            input.from = format!("host://{}", file.path.display());
            files.push(file);
        }
        // As for a batch on one host, all files of `out/` are results.
        let outputs = request.outputs.take().unwrap_or_default();
        let globs = match outputs.globs.is_empty() {
            true => vec!["out/**".to_owned()],
            false => outputs.globs,
        };
        request.outputs = Some(OutputSpec { globs, ..outputs });
        request.omit_inline_content = true;
        Ok((request, files))
    }

    fn end_with_error(&self, error: &RunError, cancel: &CancelToken) -> AttemptEnd {
        match error.code() {
            ErrorCode::Cancelled if cancel.is_cancelled() => AttemptEnd::Killed,
            ErrorCode::Storage => AttemptEnd::HostFailure(error.body().message),
            _ if !self.runtime.is_healthy() => AttemptEnd::HostFailure("the executor is lost".to_owned()),
            _ => AttemptEnd::Result(JobOutcome::from_error(error).into(), Vec::new()),
        }
    }

    /// Records the result of a job. If another worker recorded one first, that one stays.
    fn record(
        &self,
        store: &BatchStore,
        held: &HeldJob,
        outcome: &JobOutcome,
        attempts: u32,
        files: Vec<ManifestFile>,
    ) -> Result<Answer, QueueError> {
        let line = ResultLine {
            id: &held.job.id,
            key: Some(held.job.key),
            status: outcome.status(),
            cause: outcome.failure.as_ref().map(|(cause, _)| *cause),
            reason: outcome.failure.as_ref().map(|(_, reason)| reason.as_str()),
            attempts,
            report: outcome.report.as_ref(),
            error: outcome.error.as_ref(),
        };
        let result = serde_json::to_value(&line).unwrap_or_else(|error| unreachable!("all keys are text: {error}"));
        let manifest = Manifest {
            version: FORMAT_VERSION,
            worker: self.worker.clone(),
            result,
            files,
        };
        let deadline = Instant::now() + WRITE_DEADLINE;
        loop {
            match store.create_result(&held.job.job(), &manifest) {
                Ok(_) => return Ok(Answer::Done),
                Err(error) if Instant::now() > deadline => return Err(error),
                Err(error) => {
                    tracing::warn!(job = %held.job.id, %error, "a result is not written yet");
                    std::thread::sleep(WRITE_INTERVAL);
                }
            }
        }
    }
}

/// The outcome of a job whose workers were lost again and again.
fn lost_job(starts: u32) -> JobOutcome {
    let reason = format!("its workers were lost {starts} times, so it is not started again");
    let body = ErrorBody::new(ErrorCode::ExecutorLost, &reason);
    JobOutcome {
        failure: Some((FailureCause::Lost, reason)),
        report: None,
        error: Some(body),
    }
}

fn refused(body: ErrorBody) -> JobOutcome {
    JobOutcome {
        failure: Some((FailureCause::Refused, format!("{}: {}", body.code, body.message))),
        report: None,
        error: Some(body),
    }
}

/// The report with the references of the submitter instead of paths of this host.
fn with_references(report: RunReport, held: &HeldJob) -> RunReport {
    let mut report = report;
    for content in &held.job.contents {
        let to = held
            .job
            .request
            .inputs
            .get(content.index)
            .and_then(|input| input.to.as_ref());
        for staged in report.staged_inputs.iter_mut().filter(|staged| Some(&staged.to) == to) {
            staged.from = content.display_text.clone();
        }
    }
    report
}

/// Stores the files of a job, and names those that could not be.
fn store_files(
    store: &BatchStore,
    files: Vec<skillbox_runtime::KeptOutput>,
) -> Result<(Vec<ManifestFile>, Vec<String>), QueueError> {
    let (mut stored, mut failures) = (Vec::new(), Vec::new());
    for mut kept in files {
        if kept.name.starts_with('.') {
            failures.push(format!("{} is not stored: its name starts with a dot", kept.name));
            continue;
        }
        let io = |source| QueueError::Io {
            action: "read an output file",
            path: PathBuf::from(&kept.name),
            source,
        };
        kept.file.seek(SeekFrom::Start(0)).map_err(io)?;
        let (sha256, size) = store.put_content(&mut kept.file)?;
        stored.push(ManifestFile {
            name: kept.name,
            sha256,
            size,
        });
    }
    Ok((stored, failures))
}

/// Returns false if the job was cancelled meanwhile.
fn wait_unless_cancelled(delay: Duration, cancel: &CancelToken) -> bool {
    let due = Instant::now() + delay;
    while Instant::now() < due {
        if cancel.is_cancelled() {
            return false;
        }
        std::thread::sleep(CANCEL_INTERVAL.min(delay));
    }
    true
}
