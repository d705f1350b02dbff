//! Trust: what was approved is what runs, and the records prove it.

mod agents;
mod decisions;
mod evasions;
mod every_way;
mod forwarding;
mod history;
mod mutations;
mod records;
mod support;

pub use support::repetitions;
