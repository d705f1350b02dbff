//! The one place that knows all steps of a run: discover, load, stage, run, collect, save, report.
//!
//! `pipeline` tells the story; `session` keeps what outlives a run. Front doors hand in a request and get a report
//! or an error with a stable code. This crate prints nothing and reads no environment.

mod error;
mod export;
mod freeze;
mod host_directories;
mod inputs;
mod pipeline;
mod report;
mod runtime;
mod save;
pub mod session;

pub use error::RunError;
pub use host_directories::HostDirectories;
pub use pipeline::{DEFAULT_SESSION_WAIT, RunContext};
pub use runtime::{Runtime, RuntimeSettings};
