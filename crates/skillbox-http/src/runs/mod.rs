//! Runs that were started over HTTP: their turn, their events, their results.

mod gate;
mod journal;
mod record;
mod registry;
mod start;

pub(crate) use gate::Gate;
pub(crate) use journal::Entry;
pub(crate) use record::{Over, RunRecord, RunState, RunSummary, RunView, locked};
pub(crate) use registry::Registry;
pub(crate) use start::{EndsWithCaller, Order, start};
