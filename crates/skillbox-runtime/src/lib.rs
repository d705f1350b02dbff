//! The one place that knows all steps of a run: discover, load, stage, run, collect, save, report.
//!
//! `pipeline` tells the story; `session` keeps what outlives a run. Front doors hand in a request and get a report
//! or an error with a stable code. This crate prints nothing and reads no environment.

pub mod session;
