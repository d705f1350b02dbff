//! Runs started over HTTP: their queue, their events and their results.

mod event_log;
mod idempotency_keys;
mod kept_files;
mod queue;
mod record;
mod registry;

pub(crate) use event_log::LoggedEvent;
pub(crate) use idempotency_keys::{IdempotencyKeys, RequestDigest};
pub(crate) use kept_files::KeptFiles;
pub(crate) use queue::{QueueTicket, RunPermit, RunQueue};
pub(crate) use record::{RunRecord, RunResult, RunState, RunView, past_run_json};
pub(crate) use registry::{KnownRun, MAX_KEPT_FILE_BYTES, RunRegistry};
