//! Parks sandboxes, and launches runs in them.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use super::clone_child::{current_template_number, spawn_child};
use super::cloned_child::{CloneSide, ClonedChild};
use super::parked_sandboxes::ParkedSandbox;
use super::state::SpawnerState;
use crate::child::{abandon_parking, park};
use crate::kernel::socket;
use crate::plan::{Step, has_pid_namespace};
use crate::protocol::{ChildPlan, StepFailure};

/// Sends the run to a parked sandbox; none if no parked sandbox can be used. A parked sandbox that has died is reported
/// to the server together with this launch.
pub(super) fn launch_in_parked_sandbox(
    state: &mut SpawnerState,
    plan: &ChildPlan<'_>,
    mounts: &VecDeque<OwnedFd>,
    stdio: &[OwnedFd; 3],
    answers: &OwnedFd,
) -> Option<ClonedChild> {
    if !has_pid_namespace(&plan.steps) {
        // The reaper of such a run watches the server, and a parked sandbox has no connection to the server.
        return None;
    }
    let sandbox = state.parked_sandboxes.take(&plan.steps)?;
    if !sandbox.is_alive() {
        state.parking_failure = sandbox.parking_failure().or(state.parking_failure.take());
        return None;
    }
    // The template was rebuilt because the host has changed since the sandbox was parked.
    let is_current =
        current_template_number(state, &plan.steps).is_ok_and(|number| sandbox.started_from_template(number));
    if !is_current {
        return None;
    }
    let mut descriptors = vec![answers.as_fd()];
    descriptors.extend(stdio.iter().map(AsFd::as_fd));
    descriptors.extend(mounts.iter().map(AsFd::as_fd));
    sandbox.send_run(plan, &descriptors).unwrap_or_else(|error| {
        let failure = StepFailure::outside_steps("send the run to a parked sandbox", &error);
        state.parking_failure = Some(failure);
        None
    })
}

/// Parks the next sandbox. A failure is reported to the server together with the next launch. Returns in the spawner
/// only.
pub(super) fn park_next_sandbox(state: &mut SpawnerState) {
    let Some(steps) = state.parked_sandboxes.next_to_park() else {
        return;
    };
    match try_park(state, &steps) {
        Ok(sandbox) => state.parked_sandboxes.add(sandbox),
        Err(failure) => {
            state.parked_sandboxes.stop_parking(&steps);
            state.parking_failure = Some(failure);
        }
    }
}

fn try_park(state: &mut SpawnerState, steps: &Rc<[Step]>) -> Result<ParkedSandbox, StepFailure> {
    let (run_socket, child_socket) =
        socket::pair().map_err(|error| StepFailure::outside_steps("create a socket pair", &error))?;
    match spawn_child(state, steps)? {
        CloneSide::Spawner(child) => Ok(ParkedSandbox::new(steps, child, run_socket)),
        CloneSide::Child { tasks_fds } => match state.child_fds(tasks_fds) {
            Ok(fds) => park(steps, fds, child_socket),
            Err(error) => {
                let failure = StepFailure::outside_steps("copy the descriptors of the spawner", &error);
                abandon_parking(&child_socket, &failure)
            }
        },
    }
}
