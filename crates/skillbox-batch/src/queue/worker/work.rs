//! The loop of a worker: finds batches, pulls their jobs, runs them until it is stopped.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::json;
use skillbox_artifacts::Store;
use skillbox_executor::CancelToken;
use skillbox_runtime::Runtime;
use tokio::task::AbortHandle;

use super::fetched_inputs::FetchedInputs;
use super::fetched_skills::FetchedSkills;
use super::held_jobs::HeldJobs;
use super::presence::{self, PRESENCE_INTERVAL, PresentWorker};
use super::puller::Puller;
use super::run_job::JobRunner;
use crate::error::BatchError;
use crate::queue::batch_name::{ALL_CANCELLATIONS, ALL_JOBS, BatchName, Priority};
use crate::queue::batch_store::BatchStore;
use crate::queue::connection::Queue;
use crate::queue::error::QueueError;

/// How often a worker looks for new batches.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(1);
/// How often a worker looks whether it has to stop, and for jobs that wait too long.
const TICK: Duration = Duration::from_millis(200);
/// How long the servers may take to confirm the last answers.
const CONFIRMATION_TIMEOUT: Duration = Duration::from_secs(10);
/// The names of streams in one answer of a server.
const NAMES_IN_PAGE: usize = 1024;

/// How a worker works.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// The number of jobs that run at the same time.
    pub jobs: NonZero<usize>,
    /// Only the jobs of this batch.
    pub only: Option<BatchName>,
    /// The worker ends when it has had no job for this long.
    pub exit_when_idle: Option<Duration>,
    /// The name of this host.
    pub host: String,
    /// Where fetched skills stay.
    pub skills_directory: PathBuf,
    /// Where fetched inputs are. The runtime must allow inputs from there.
    pub inputs_directory: PathBuf,
}

/// What a worker has done.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct WorkerSummary {
    /// The worker.
    pub worker: String,
    /// The jobs that it finished.
    pub finished: usize,
}

/// Works until `stop` is cancelled or, if so configured, until there has been nothing to do. Running jobs end first.
pub fn work(
    runtime: &Runtime,
    queue: &Queue,
    store: &Store,
    options: &WorkerOptions,
    stop: &CancelToken,
) -> Result<WorkerSummary, QueueError> {
    BatchStore::check_store(store)?;
    let unique = uuid::Uuid::now_v7().simple().to_string();
    let worker = format!("{}-{}-{}", plain(&options.host), std::process::id(), &unique[20..]);
    let runner = JobRunner {
        runtime,
        store,
        worker: worker.clone(),
        skills: FetchedSkills::new(options.skills_directory.clone()),
        inputs: Arc::new(FetchedInputs::open(&options.inputs_directory, &worker)?),
        submissions: Mutex::default(),
    };
    let held = Arc::new(HeldJobs::new(options.jobs.get()));
    thread::scope(|scope| -> Result<(), QueueError> {
        let (runner, held) = (&runner, &held);
        for _ in 0..options.jobs.get() {
            let started = thread::Builder::new()
                .name("job".to_owned())
                .spawn_scoped(scope, move || run_jobs(runner, queue, held));
            if let Err(error) = started {
                queue.wait(held.stop());
                return Err(BatchError::Threads(error).into());
            }
        }
        queue.wait(serve(runtime, queue, held, options, &worker, stop));
        Ok(())
    })?;
    let deadline = Instant::now() + CONFIRMATION_TIMEOUT;
    while !held.is_confirmed() && Instant::now() < deadline {
        thread::sleep(TICK / 10);
    }
    if let Err(error) = queue.wait(queue.flush("send the last answers")) {
        tracing::debug!(%error, "the last answers may be lost");
    }
    if !runtime.is_healthy() {
        return Err(QueueError::ExecutorLost);
    }
    Ok(WorkerSummary {
        worker,
        finished: held.counts().1,
    })
}

/// The work of one thread.
fn run_jobs(runner: &JobRunner<'_>, queue: &Queue, held: &HeldJobs) {
    while let Some(job) = held.take() {
        let begin = Instant::now();
        let answer = runner.run(&job);
        held.finish(queue, job, answer, begin.elapsed());
    }
}

/// Feeds the threads until the worker stops.
async fn serve(
    runtime: &Runtime,
    queue: &Queue,
    held: &Arc<HeldJobs>,
    options: &WorkerOptions,
    worker: &str,
    stop: &CancelToken,
) {
    let cancellations = tokio::spawn(hear_cancellations(queue.client.clone(), Arc::clone(held)));
    let mut pullers: BTreeMap<BatchName, Vec<AbortHandle>> = BTreeMap::new();
    let mut last_discovery: Option<Instant> = None;
    let mut last_presence: Option<Instant> = None;
    let mut last_work = (Instant::now(), 0);
    while !stop.is_cancelled() && runtime.is_healthy() {
        if last_discovery.is_none_or(|last| last.elapsed() >= DISCOVERY_INTERVAL) {
            last_discovery = Some(Instant::now());
            if let Some(batches) = list_batches(queue).await {
                // The first batch creates the bucket of the workers.
                if update_pullers(queue, held, options, batches, &mut pullers) {
                    last_presence = None;
                }
            }
        }
        let (running, finished) = held.counts();
        if last_presence.is_none_or(|last| last.elapsed() >= PRESENCE_INTERVAL) {
            last_presence = Some(Instant::now());
            let present = PresentWorker {
                id: worker.to_owned(),
                slots: options.jobs.get(),
                running,
                finished,
            };
            presence::write(&queue.client, &present).await;
        }
        if running > 0 || finished != last_work.1 {
            last_work = (Instant::now(), finished);
        }
        if options.exit_when_idle.is_some_and(|idle| last_work.0.elapsed() >= idle) {
            break;
        }
        held.give_back_late_jobs().await;
        tokio::time::sleep(TICK).await;
    }
    cancellations.abort();
    for handle in pullers.values().flatten() {
        handle.abort();
    }
    held.stop().await;
}

/// Starts to pull from new batches, and stops to pull from those without a stream. Returns whether there are new ones.
fn update_pullers(
    queue: &Queue,
    held: &Arc<HeldJobs>,
    options: &WorkerOptions,
    batches: Vec<BatchName>,
    pullers: &mut BTreeMap<BatchName, Vec<AbortHandle>>,
) -> bool {
    pullers.retain(|batch, handles| {
        let stays = batches.contains(batch);
        if !stays {
            handles.iter().for_each(AbortHandle::abort);
            held.forget_backlog(batch);
        }
        stays
    });
    let mut has_new = false;
    for batch in batches {
        if options.only.as_ref().is_some_and(|only| *only != batch) || pullers.contains_key(&batch) {
            continue;
        }
        let started = Priority::ALL.map(|priority| {
            let puller = Puller {
                client: queue.client.clone(),
                jetstream: queue.jetstream.clone(),
                batch: batch.clone(),
                priority,
                held: Arc::clone(held),
            };
            tokio::spawn(puller.run()).abort_handle()
        });
        pullers.insert(batch, started.to_vec());
        has_new = true;
    }
    has_new
}

#[derive(Deserialize)]
struct StreamNames {
    #[serde(default)]
    streams: Option<Vec<String>>,
}

/// The batches with a stream; none if the servers do not answer.
async fn list_batches(queue: &Queue) -> Option<Vec<BatchName>> {
    let mut batches = Vec::new();
    for page in 0.. {
        let request = json!({"subject": ALL_JOBS, "offset": page * NAMES_IN_PAGE});
        let answer = queue.client.request("$JS.API.STREAM.NAMES", request.to_string().into());
        let answer = answer.await.ok()?;
        let names = serde_json::from_slice::<StreamNames>(&answer.payload).ok()?;
        let names = names.streams.unwrap_or_default();
        batches.extend(names.iter().filter_map(|name| BatchName::of_stream(name)));
        if names.len() < NAMES_IN_PAGE {
            break;
        }
    }
    Some(batches)
}

/// Kills running jobs of cancelled batches.
async fn hear_cancellations(client: async_nats::Client, held: Arc<HeldJobs>) {
    loop {
        if let Ok(mut heard) = client.subscribe(ALL_CANCELLATIONS).await {
            while let Some(message) = heard.next().await {
                if let Some(batch) = BatchName::of_cancellation(&message.subject) {
                    held.cancel_batch(&batch).await;
                }
            }
        }
        tokio::time::sleep(DISCOVERY_INTERVAL).await;
    }
}

/// The name of a host, with only characters that subjects and files allow.
fn plain(host: &str) -> String {
    let plain = host.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    plain.take(40).collect()
}
