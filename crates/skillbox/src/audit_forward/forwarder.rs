//! Reads batches from the log, delivers them, and moves the cursor; again after a pause if that fails.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use skillbox_trust::{AuditForward, HostKey, MissingRecords, TrustError};

use super::delivery::DeliveryError;
use super::receiver::Receiver;

/// How often the log is checked for new records. The check reads some hundred bytes.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
const FIRST_RETRY: Duration = Duration::from_secs(1);
const MAX_RETRY: Duration = Duration::from_secs(60);
/// The time for the last records when the process ends. What remains is forwarded by the next process.
const FINAL_TIME: Duration = Duration::from_secs(3);

/// What operators should know.
#[derive(Clone, Debug)]
pub enum ForwardEvent {
    /// Records are not forwarded, for the first time since they were.
    Failed(String),
    /// Records are forwarded again.
    Recovered,
    /// Records were removed from the log before they were forwarded.
    Missing(MissingRecords),
}

/// Why a pass failed.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// The log or the cursor cannot be used.
    #[error(transparent)]
    Log(#[from] TrustError),
    /// The receiver does not have the records.
    #[error(transparent)]
    Delivery(#[from] DeliveryError),
}

/// The result of a pass that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardPass {
    /// The receiver has so many more records, and all of them.
    Complete(u64),
    /// The pass was stopped after so many records.
    Stopped(u64),
    /// Another process forwards the log.
    OtherProcess,
}

/// Ends a forwarder that waits.
#[derive(Debug, Default)]
pub struct StopSignal {
    is_stopped: Mutex<bool>,
    changed: Condvar,
}

impl StopSignal {
    pub fn stop(&self) {
        *self.is_stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    fn is_stopped(&self) -> bool {
        *self.is_stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, time: Duration) {
        let guard = self.is_stopped.lock().unwrap_or_else(PoisonError::into_inner);
        // A poisoned lock has the value as well.
        let _waited = self.changed.wait_timeout_while(guard, time, |is_stopped| !*is_stopped);
    }
}

/// Forwards one log to one receiver.
pub struct Forwarder {
    trust_dir: PathBuf,
    key: Arc<HostKey>,
    receiver: Receiver,
    opened: Option<AuditForward>,
}

impl Forwarder {
    pub fn new(trust_dir: PathBuf, key: Arc<HostKey>, receiver: Receiver) -> Self {
        Self {
            trust_dir,
            key,
            receiver,
            opened: None,
        }
    }

    /// Forwards all records, until `until` or the first failure.
    pub fn forward_all(
        &mut self,
        until: Option<Instant>,
        notify: &mut dyn FnMut(ForwardEvent),
    ) -> Result<ForwardPass, ForwardError> {
        if self.opened.is_none() {
            self.opened = AuditForward::open(&self.trust_dir, Arc::clone(&self.key))?;
        }
        let Some(log) = &mut self.opened else {
            return Ok(ForwardPass::OtherProcess);
        };
        let result = forward(log, &mut self.receiver, until, notify);
        match &result {
            Ok(_) => {
                if log.clear_problem()? {
                    notify(ForwardEvent::Recovered);
                }
            }
            Err(error) => {
                let message = skillbox_model::with_causes(error);
                if log.report_problem(&message)? {
                    notify(ForwardEvent::Failed(message));
                }
            }
        }
        result
    }

    /// Forwards records as they are written, until it is stopped.
    pub fn follow(&mut self, stop: &StopSignal, notify: &mut dyn FnMut(ForwardEvent)) {
        let mut retry = FIRST_RETRY;
        let mut has_failed = false;
        while !stop.is_stopped() {
            let pause = match self.forward_all(None, notify) {
                Ok(_) => {
                    (retry, has_failed) = (FIRST_RETRY, false);
                    POLL_INTERVAL
                }
                Err(error) => {
                    // A cursor that cannot be stored cannot keep the problem either.
                    if !has_failed && self.opened.is_none() {
                        notify(ForwardEvent::Failed(skillbox_model::with_causes(&error)));
                    }
                    has_failed = true;
                    let pause = retry;
                    retry = (retry * 2).min(MAX_RETRY);
                    pause
                }
            };
            stop.wait(pause);
        }
        // A failure is stored, and the next process continues.
        let _remaining = self.forward_all(Some(Instant::now() + FINAL_TIME), notify);
    }

    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }
}

fn forward(
    log: &mut AuditForward,
    receiver: &mut Receiver,
    until: Option<Instant>,
    notify: &mut dyn FnMut(ForwardEvent),
) -> Result<ForwardPass, ForwardError> {
    let mut count = 0;
    while let Some(batch) = log.next_batch(receiver.batch_limit())? {
        if until.is_some_and(|until| Instant::now() > until) {
            return Ok(ForwardPass::Stopped(count));
        }
        receiver.deliver(&batch)?;
        count += batch.records.len() as u64;
        let missing = batch.missing.clone();
        log.confirm(batch)?;
        if let Some(missing) = missing {
            notify(ForwardEvent::Missing(missing));
        }
    }
    Ok(ForwardPass::Complete(count))
}
