//! A child of the spawner.

use std::os::fd::OwnedFd;

use crate::cgroup::RunCgroup;
use crate::protocol::StepFailure;

/// A cloned child.
pub(super) struct ClonedChild {
    pub pid: i32,
    pub pidfd: OwnedFd,
    pub cgroup: Option<RunCgroup>,
    /// Preferred steps of the spawner that failed.
    pub degraded: Vec<StepFailure>,
    /// Its mount namespace. It stays open until nobody waits for the end of the run, because the unmounting is slow.
    pub mounts: Option<OwnedFd>,
    /// The number of the template that it started from.
    pub template: Option<u64>,
}

/// Which side of the clone this is.
pub(super) enum CloneSide {
    /// The spawner.
    Spawner(ClonedChild),
    /// The child, with the `tasks` files of its control groups.
    Child { tasks_fds: Vec<OwnedFd> },
}
