//! Runs started over HTTP: their queue, their events and their results.

mod event_log;
mod queue;
mod record;
mod registry;

pub(crate) use event_log::LoggedEvent;
pub(crate) use queue::{QueueTicket, RunPermit, RunQueue};
pub(crate) use record::{RunRecord, RunResult, RunState, RunSummary, RunView};
pub(crate) use registry::RunRegistry;
