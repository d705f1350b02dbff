//! What a run left when everything in its sandbox was dead.

use std::time::Duration;

use skillbox_model::{Enforcement, Outcome, Usage};

use crate::Captured;

/// The end of a run, before anything is collected.
#[derive(Debug)]
pub struct Finished {
    /// How the command ended.
    pub outcome: Outcome,
    /// What it wrote to standard output.
    pub stdout: Captured,
    /// What it wrote to standard error.
    pub stderr: Captured,
    /// From the start of the command to the death of everything.
    pub duration: Duration,
    /// What it used.
    pub usage: Usage,
    /// What was enforced.
    pub enforcement: Enforcement,
    /// What the caller should know.
    pub warnings: Vec<String>,
}
