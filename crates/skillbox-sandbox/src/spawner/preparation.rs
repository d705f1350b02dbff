//! Work that the spawner does in advance for the next run.

use super::network::NetworkNamespace;
use super::parking::park_next_sandbox;
use super::state::SpawnerState;
use crate::cgroup::CgroupFactory;

/// Whether anything is left to prepare for the next run.
pub(super) fn needs_preparation_for_next_run(state: &SpawnerState) -> bool {
    let has_no_next_run = state.is_single_run && state.has_launched;
    !has_no_next_run
        && (state.parked_sandboxes.needs_preparation()
            || state.network.as_ref().is_ok_and(NetworkNamespace::needs_preparation)
            || state.cgroups.as_ref().is_some_and(CgroupFactory::needs_spare))
}

/// Prepares one item: a parked sandbox, a network namespace or a control group. If a namespace or group cannot be
/// created, the launch that needs it tries again and reports the error.
pub(super) fn prepare_next(state: &mut SpawnerState) {
    if state.parked_sandboxes.needs_preparation() {
        park_next_sandbox(state);
    } else if let Ok(network) = &mut state.network
        && network.needs_preparation()
    {
        let _ = network.prepare();
    } else if let Some(cgroups) = &mut state.cgroups {
        cgroups.prepare_spare();
    }
}

/// Prepares the network namespace of a single run, while the server is still reading the request for it.
pub(super) fn prepare_for_single_run(state: &mut SpawnerState) {
    if let Ok(network) = &mut state.network
        && state.is_single_run
    {
        // After a failure the launch tries again and reports the error.
        let _ = network.prepare();
    }
}
