//! What a hint depends on.

use std::time::Duration;

use skillbox_model::{Enforcement, ExecutorKind, Layer, LayerState, Limits, ResourceUsage, RunOutcome};

/// Everything about a finished run that a hint depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FinishedRun<'a> {
    pub outcome: RunOutcome,
    pub stderr: &'a str,
    /// The program that the request names, without its arguments; none for a command line of a shell.
    pub program: Option<&'a str>,
    /// The bytes that the run wrote to stdout and stderr.
    pub output_bytes: u64,
    pub usage: ResourceUsage,
    pub limits: &'a Limits,
    /// The largest timeout that a request can ask for.
    pub max_wall: Duration,
    pub profile: &'a str,
    pub executor: ExecutorKind,
    pub enforcement: &'a Enforcement,
    /// Whether the run could reach at least one host.
    pub reaches_hosts: bool,
}

impl FinishedRun<'_> {
    /// Whether the profile requested a layer, even if the host could not provide it.
    pub(super) fn is_requested(&self, layer: Layer) -> bool {
        let state = self.enforcement.layers.get(&layer);
        state.is_some_and(|state| *state != LayerState::NotRequested)
    }
}
