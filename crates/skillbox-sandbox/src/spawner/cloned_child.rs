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
    pub failed_preferred_steps: Vec<StepFailure>,
    /// Its mount namespace. The descriptor delays the slow unmounting until the server has the result of the run.
    pub mount_namespace: Option<OwnedFd>,
    /// The sockets that listen in its network namespace.
    pub sockets: Vec<OwnedFd>,
    /// The number of the template that it started from.
    pub template: Option<u64>,
}

/// The process in which `spawn_child` returns.
pub(super) enum CloneSide {
    /// The spawner.
    Spawner(ClonedChild),
    /// The child, with the `tasks` files of its control groups.
    Child { tasks_fds: Vec<OwnedFd> },
}
