//! Launches one run: in a parked sandbox if one fits, and otherwise in a new one.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use rustix::fs::{FileType, fchown, fstat};
use rustix::process::{Gid, Uid};

use super::clone_child::spawn_child;
use super::cloned_child::{CloneSide, ClonedChild};
use super::parking::launch_in_parked_sandbox;
use super::run_mounts::open_run_mounts;
use super::state::SpawnerState;
use crate::child::{RunFds, fail_launch, run_child};
use crate::host::UidGid;
use crate::protocol::{ChildPlan, ReceivedLaunchFds, StepFailure};

/// A child that runs the command, or is going to.
pub(super) struct LaunchedChild {
    pub child: ClonedChild,
    pub answers: OwnedFd,
    /// Whether it was parked before the run.
    pub was_parked: bool,
}

/// Launches the command of a plan. Returns in the spawner only.
pub(super) fn launch(
    state: &mut SpawnerState,
    plan: &ChildPlan<'_>,
    fds: ReceivedLaunchFds,
) -> Result<LaunchedChild, StepFailure> {
    let mounts = open_run_mounts(state, plan, &fds)?;
    let ReceivedLaunchFds { answers, stdio, .. } = fds;
    if state.facts.privileged {
        chown_pipes(&stdio, state.facts.script_ids);
    }
    if let Some(child) = launch_in_parked_sandbox(state, plan, &mounts, &stdio, &answers) {
        return Ok(LaunchedChild {
            child,
            answers,
            was_parked: true,
        });
    }
    match spawn_child(state, &plan.steps)? {
        CloneSide::Spawner(child) => Ok(LaunchedChild {
            child,
            answers,
            was_parked: false,
        }),
        CloneSide::Child { tasks_fds } => become_child(state, plan, tasks_fds, mounts, stdio, answers),
    }
}

fn become_child(
    state: &SpawnerState,
    plan: &ChildPlan<'_>,
    tasks_fds: Vec<OwnedFd>,
    mounts: VecDeque<OwnedFd>,
    stdio: [OwnedFd; 3],
    answers: OwnedFd,
) -> ! {
    let run_fds = RunFds { answers, stdio, mounts };
    match state.child_fds(tasks_fds) {
        Ok(fds) => run_child(plan, fds, run_fds),
        Err(error) => {
            let failure = StepFailure::outside_steps("copy the descriptors of the spawner", &error);
            fail_launch(&run_fds.answers, failure)
        }
    }
}

/// Changes the owner of the pipes to the script's user, who otherwise cannot open `/dev/stdin`, `/dev/stdout` and
/// `/dev/stderr`.
fn chown_pipes(stdio: &[OwnedFd; 3], script: UidGid) {
    for descriptor in stdio {
        let is_pipe = fstat(descriptor).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
        if is_pipe {
            // After a failure the pipe still works through its descriptor.
            let _ = fchown(
                descriptor,
                Some(Uid::from_raw(script.uid)),
                Some(Gid::from_raw(script.gid)),
            );
        }
    }
}
