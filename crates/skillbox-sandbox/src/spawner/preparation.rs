//! Work that the spawner does ahead of the next run.

use super::network::Network;
use super::parking::park_one;
use super::state::SpawnerState;
use crate::cgroup::CgroupFactory;

/// Whether something can be prepared for the next run.
pub(super) fn has_preparations(state: &SpawnerState) -> bool {
    let is_last_run = state.is_one_shot && state.has_launched;
    !is_last_run
        && (state.slots.needs_preparation()
            || state.network.as_ref().is_ok_and(Network::needs_preparation)
            || state.cgroups.as_ref().is_some_and(CgroupFactory::needs_spare))
}

/// Prepares one thing. A namespace or group that cannot be created is created by the launch that needs it, which reports
/// the failure.
pub(super) fn prepare_next(state: &mut SpawnerState) {
    if state.slots.needs_preparation() {
        park_one(state);
    } else if let Ok(network) = &mut state.network
        && network.needs_preparation()
    {
        let _ = network.prepare();
    } else if let Some(cgroups) = &mut state.cgroups {
        cgroups.prepare_spare();
    }
}

/// Prepares the network namespace of the only run, while the server still reads the request for it.
pub(super) fn prepare_for_only_run(state: &mut SpawnerState) {
    if let Ok(network) = &mut state.network
        && state.is_one_shot
    {
        // The launch repeats the attempt, and reports the failure.
        let _ = network.prepare();
    }
}
