//! The result of running a command, before its outputs are collected.

use std::time::Duration;

use skillbox_model::{Enforcement, NetworkReport, ResourceUsage, RunOutcome};

use crate::CapturedOutput;

/// The result of a run after its last process has ended.
#[derive(Debug)]
pub struct ExecutionResult {
    /// How the command ended.
    pub outcome: RunOutcome,
    /// The captured standard output.
    pub stdout: CapturedOutput,
    /// The captured standard error.
    pub stderr: CapturedOutput,
    /// The time from the start of the command to the end of the last process.
    pub duration: Duration,
    /// The consumed resources.
    pub usage: ResourceUsage,
    /// The isolation layers that were enforced.
    pub enforcement: Enforcement,
    /// What the run did on the network; none if it could reach no host.
    pub network: Option<NetworkReport>,
    /// Warnings for the caller.
    pub warnings: Vec<String>,
}
