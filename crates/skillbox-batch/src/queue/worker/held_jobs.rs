//! The jobs that this worker holds: waiting or running. Each is kept alive on the queue until it is answered.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_nats::jetstream::{AckKind, Message};
use skillbox_executor::CancelToken;
use tokio::task::AbortHandle;

use crate::queue::batch_name::{BatchName, Priority};
use crate::queue::connection::Queue;
use crate::queue::message::{FORMAT_VERSION, JobMessage};

/// How often a waiting thread looks whether the worker is stopping.
const STOP_INTERVAL: Duration = Duration::from_millis(200);
/// Jobs shorter than this are fetched before a thread is free for them. A longer one would wait while other workers idle.
const SHORT_JOB: Duration = Duration::from_secs(1);
/// How long a job may wait here for a free thread before it goes back to the queue.
const MAX_WAIT: Duration = Duration::from_secs(3);
/// The weight of the newest duration in the mean, as its divisor.
const MEAN_WINDOW: u32 = 8;
/// A job is kept alive several times in each wait of the queue.
const HEARTBEATS_PER_WAIT: u64 = 4;
const MIN_HEARTBEAT: Duration = Duration::from_millis(250);

/// A job from the queue, held by this worker.
#[derive(Debug)]
pub(super) struct HeldJob {
    pub batch: BatchName,
    pub job: JobMessage,
    /// How often the queue has delivered it, this time included.
    pub deliveries: u64,
    /// Cancels its run.
    pub cancel: CancelToken,
    message: Message,
    heartbeat: AbortHandle,
    number: u64,
}

impl Drop for HeldJob {
    fn drop(&mut self) {
        self.heartbeat.abort();
    }
}

/// How a held job is answered.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    /// Its result is recorded.
    Done,
    /// It must not run any more.
    Drop,
    /// Another delivery after this delay.
    GiveBack(Duration),
}

/// The jobs that this worker holds.
#[derive(Debug)]
pub(super) struct HeldJobs {
    slots: usize,
    state: Mutex<State>,
    changed: Condvar,
    /// Answers that the servers have not confirmed.
    unconfirmed: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct State {
    waiting: BTreeMap<(Priority, u64), (Instant, HeldJob)>,
    running: HashMap<u64, (BatchName, CancelToken)>,
    /// The jobs that are left at consumers, as their last message said.
    backlog: HashMap<(BatchName, Priority), u64>,
    next_number: u64,
    finished: usize,
    mean_duration: Option<Duration>,
    is_stopping: bool,
}

impl HeldJobs {
    pub fn new(slots: usize) -> Self {
        Self {
            slots,
            state: Mutex::default(),
            changed: Condvar::new(),
            unconfirmed: Arc::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of jobs of a priority that this worker should ask for. While there are jobs of a higher priority, it
    /// asks for none; jobs of a lower one that wait here do not count.
    pub fn wanted(&self, priority: Priority) -> usize {
        let state = self.state();
        let is_higher = |((_, other), left): (&(BatchName, Priority), &u64)| *other < priority && *left > 0;
        if state.is_stopping || state.backlog.iter().any(is_higher) {
            return 0;
        }
        let are_short = state.mean_duration.is_some_and(|mean| mean < SHORT_JOB);
        let capacity = if are_short { 2 * self.slots } else { self.slots };
        let waiting = state.waiting.keys().filter(|(other, _)| *other <= priority).count();
        capacity.saturating_sub(waiting + state.running.len())
    }

    /// Notes how many jobs a consumer has left.
    pub fn set_backlog(&self, batch: &BatchName, priority: Priority, left: u64) {
        self.state().backlog.insert((batch.clone(), priority), left);
    }

    /// Forgets the consumers of a batch that is over.
    pub fn forget_backlog(&self, batch: &BatchName) {
        self.state().backlog.retain(|(known, _), _| known != batch);
    }

    /// Running and finished jobs.
    pub fn counts(&self) -> (usize, usize) {
        let state = self.state();
        (state.running.len(), state.finished)
    }

    /// Takes a delivered message. One that is not a job of this version is dropped from the queue, because it never will be.
    pub async fn hold(&self, queue_message: Message, batch: &BatchName, priority: Priority) {
        let parsed = serde_json::from_slice::<JobMessage>(&queue_message.payload);
        let (job, cancel) = match (parsed, CancelToken::new()) {
            (Ok(job), Ok(cancel)) if job.version == FORMAT_VERSION => (job, cancel),
            (Ok(job), Ok(_)) => {
                tracing::warn!(%batch, version = job.version, "a job of an unknown version is left to other workers");
                return answer(&queue_message, AckKind::Nak(Some(MAX_WAIT))).await;
            }
            (Ok(_), Err(_)) => return answer(&queue_message, AckKind::Nak(Some(MAX_WAIT))).await,
            (Err(error), _) => {
                tracing::warn!(%batch, %error, "a message that is not a job is dropped from the queue");
                return answer(&queue_message, AckKind::Term).await;
            }
        };
        let info = queue_message.info();
        let (deliveries, left) = info.map_or((1, 0), |info| (info.delivered.unsigned_abs(), info.pending));
        let heartbeat = keep_alive(queue_message.clone(), Duration::from_millis(job.ack_wait_ms));
        let mut state = self.state();
        state.next_number += 1;
        let held = HeldJob {
            batch: batch.clone(),
            job,
            deliveries,
            cancel,
            message: queue_message,
            heartbeat,
            number: state.next_number,
        };
        let number = held.number;
        state.backlog.insert((batch.clone(), priority), left);
        state.waiting.insert((priority, number), (Instant::now(), held));
        drop(state);
        self.changed.notify_one();
    }

    /// The next job to run, of the highest priority; none when the worker stops.
    pub fn take(&self) -> Option<HeldJob> {
        let mut state = self.state();
        loop {
            if state.is_stopping {
                return None;
            }
            if let Some((_, (_, held))) = state.waiting.pop_first() {
                state
                    .running
                    .insert(held.number, (held.batch.clone(), held.cancel.clone()));
                return Some(held);
            }
            let waited = self.changed.wait_timeout(state, STOP_INTERVAL);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Answers a job that was taken.
    pub fn finish(&self, queue: &Queue, held: HeldJob, given: Answer, duration: Duration) {
        // The slot is free before the servers have confirmed: the result is recorded, and an answer that is lost only
        // leads to another look at that record.
        {
            let mut state = self.state();
            state.running.remove(&held.number);
            state.finished += usize::from(matches!(given, Answer::Done));
            let mean = state.mean_duration.unwrap_or(duration);
            state.mean_duration = Some((mean * (MEAN_WINDOW - 1) + duration) / MEAN_WINDOW);
        }
        let message = held.message.clone();
        let unconfirmed = Arc::clone(&self.unconfirmed);
        unconfirmed.fetch_add(1, Ordering::SeqCst);
        queue.spawn(async move {
            match given {
                // The servers confirm, so that a job whose acknowledgement was lost does not stay queued until its wait
                // ends. The job is kept alive meanwhile.
                Answer::Done => {
                    if message.double_ack().await.is_err() {
                        answer(&message, AckKind::Ack).await;
                    }
                }
                Answer::Drop => answer(&message, AckKind::Term).await,
                Answer::GiveBack(delay) => answer(&message, AckKind::Nak(Some(delay))).await,
            }
            drop(held);
            unconfirmed.fetch_sub(1, Ordering::SeqCst);
        });
    }

    /// Whether the servers have confirmed every answer.
    pub fn is_confirmed(&self) -> bool {
        self.unconfirmed.load(Ordering::SeqCst) == 0
    }

    /// Gives jobs back that have waited too long for a free thread.
    pub async fn give_back_late_jobs(&self) {
        let late = {
            let mut state = self.state();
            let is_late = |(since, _): &(Instant, HeldJob)| since.elapsed() > MAX_WAIT;
            let keys: Vec<_> = state
                .waiting
                .iter()
                .filter(|(_, job)| is_late(job))
                .map(|(key, _)| *key)
                .collect();
            keys.iter()
                .filter_map(|key| state.waiting.remove(key))
                .collect::<Vec<_>>()
        };
        for (_, held) in late {
            answer(&held.message, AckKind::Nak(None)).await;
        }
    }

    /// Drops the waiting jobs of a batch and kills its running ones.
    pub async fn cancel_batch(&self, batch: &BatchName) {
        let dropped = {
            let mut state = self.state();
            for (_, cancel) in state.running.values().filter(|(running, _)| running == batch) {
                cancel.cancel();
            }
            let waiting = state.waiting.iter().filter(|(_, (_, held))| held.batch == *batch);
            let keys: Vec<_> = waiting.map(|(key, _)| *key).collect();
            keys.iter()
                .filter_map(|key| state.waiting.remove(key))
                .collect::<Vec<_>>()
        };
        for (_, held) in dropped {
            answer(&held.message, AckKind::Term).await;
        }
    }

    /// Gives waiting jobs back. Running ones end.
    pub async fn stop(&self) {
        let waiting = {
            let mut state = self.state();
            state.is_stopping = true;
            std::mem::take(&mut state.waiting)
        };
        self.changed.notify_all();
        for (_, held) in waiting.into_values() {
            answer(&held.message, AckKind::Nak(None)).await;
        }
    }
}

/// Answers a message. If that fails, the queue delivers it again after its wait.
async fn answer(message: &Message, kind: AckKind) {
    if let Err(error) = message.ack_with(kind).await {
        tracing::debug!(%error, "an answer to the queue is lost");
    }
}

/// Tells the queue again and again that the job is being worked on.
fn keep_alive(message: Message, ack_wait: Duration) -> AbortHandle {
    let millis = u64::try_from(ack_wait.as_millis()).unwrap_or(u64::MAX) / HEARTBEATS_PER_WAIT;
    let interval = Duration::from_millis(millis).max(MIN_HEARTBEAT);
    let beat = async move {
        loop {
            tokio::time::sleep(interval).await;
            answer(&message, AckKind::Progress).await;
        }
    };
    tokio::spawn(beat).abort_handle()
}
