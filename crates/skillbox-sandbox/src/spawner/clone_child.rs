//! Applies the spawner's own steps, up to the clone of the child.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, openat};
use rustix::process::{Gid, Uid};

use super::cloned_child::{CloneSide, ClonedChild};
use super::mount_namespaces::enter;
use super::network::NetworkKind;
use super::single_thread::clone_spawner;
use super::state::SpawnerState;
use crate::cgroup::RunCgroup;
use crate::host::Ids;
use crate::kernel::clone::CloneResult;
use crate::plan::{Namespace, SpawnOp, Step, spawn_steps};
use crate::profile::Need;
use crate::protocol::StepFailure;

/// Applies the spawner's steps and clones the child. Returns in both processes.
pub(super) fn spawn_child(state: &mut SpawnerState, steps: &[Step]) -> Result<CloneSide, StepFailure> {
    let mut degraded = Vec::new();
    let mut cgroup: Option<RunCgroup> = None;
    for (step, op) in spawn_steps(steps) {
        match op {
            SpawnOp::CreateCgroup(limits) => {
                let created = match &mut state.cgroups {
                    Some(cgroups) => cgroups.create(limits),
                    None => Err(io::Error::from_raw_os_error(libc::ENOENT)),
                };
                match created.map_err(|error| StepFailure::of_step(step, "create a control group", &error)) {
                    Ok(created) => cgroup = Some(created),
                    Err(failure) if step.need == Need::Preferred => degraded.push(failure),
                    Err(failure) => return Err(failure),
                }
            }
            SpawnOp::Network { loopback } => {
                let kind = if *loopback {
                    NetworkKind::Loopback
                } else {
                    NetworkKind::Empty
                };
                enter_network(state, kind)
                    .map_err(|error| StepFailure::of_step(step, "create a network namespace", &error))?;
            }
            // The clone enters the mounts of the host, because the plan has no template.
            SpawnOp::HostView => {}
            SpawnOp::Clone {
                namespaces,
                into_cgroup,
            } => {
                let clone_cgroup = cgroup
                    .as_ref()
                    .filter(|_| *into_cgroup)
                    .and_then(RunCgroup::clone_directory);
                let flags = namespaces
                    .iter()
                    .fold(0, |flags, namespace| flags | clone_flag(*namespace));
                let (cloned, template) =
                    clone_from_template(state, steps, flags, clone_cgroup).map_err(|error| match error {
                        CloneError::Template(failure) => failure,
                        CloneError::Clone(error) => StepFailure::of_step(step, "clone", &error),
                    })?;
                return Ok(match cloned {
                    CloneResult::Parent { pid, pidfd } => CloneSide::Spawner(ClonedChild {
                        pid,
                        pidfd,
                        cgroup,
                        degraded,
                        mounts: open_mounts_of(state, pid),
                        template,
                    }),
                    CloneResult::Child => {
                        if let Some(affinity) = state.affinity {
                            // A child that keeps the affinity of the spawner only has fewer processors.
                            let _ = affinity.restore();
                        }
                        CloneSide::Child {
                            tasks_fds: cgroup.map(RunCgroup::into_tasks_fds).unwrap_or_default(),
                        }
                    }
                });
            }
        }
    }
    let error = io::Error::from_raw_os_error(libc::EINVAL);
    Err(StepFailure::outside_steps("find the clone in the plan", &error))
}

/// The mount namespace of a child; none once the child has ended. Without the descriptor the kernel unmounts when the
/// child dies, which only takes longer.
fn open_mounts_of(state: &SpawnerState, pid: i32) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let proc = &state.mounts.as_ref()?.proc;
    openat(proc, format!("{pid}/ns/mnt"), flags, Mode::empty()).ok()
}

/// The number of the template that a child with these steps would start from now.
pub(super) fn template_number(state: &mut SpawnerState, steps: &[Step]) -> Result<Option<u64>, StepFailure> {
    match &state.mounts {
        Some(mounts) => Ok(state.templates.namespace(mounts, steps)?.map(|(_, number)| number)),
        None => Ok(None),
    }
}

/// Why there is no child.
enum CloneError {
    Template(StepFailure),
    Clone(io::Error),
}

impl From<io::Error> for CloneError {
    fn from(error: io::Error) -> Self {
        Self::Clone(error)
    }
}

fn enter_network(state: &mut SpawnerState, kind: NetworkKind) -> io::Result<()> {
    match &mut state.network {
        Ok(network) => network.enter(kind),
        Err(error) => Err(io::Error::from_raw_os_error(
            error.raw_os_error().unwrap_or(libc::EPERM),
        )),
    }
}

/// Clones on a copy of the template. The script's ids are in effect during the clone, so that the child may write its id
/// maps itself, without a handshake.
fn clone_from_template(
    state: &mut SpawnerState,
    steps: &[Step],
    flags: u64,
    cgroup: Option<BorrowedFd<'_>>,
) -> Result<(CloneResult, Option<u64>), CloneError> {
    let has_network = spawn_steps(steps).any(|(_, op)| matches!(op, SpawnOp::Network { .. }));
    if let Ok(network) = &mut state.network
        && !has_network
    {
        network.enter(NetworkKind::Host)?;
    }
    let switches_ids = state.facts.privileged && flags & libc::CLONE_NEWUSER as u64 != 0;
    let template = match &state.mounts {
        Some(mounts) => state.templates.namespace(mounts, steps).map_err(CloneError::Template)?,
        None => None,
    };
    let number = template.map(|(_, number)| number);
    match (&state.mounts, template) {
        (_, Some((template, _))) => enter(template.as_fd())?,
        // A run without a mount namespace sees the mounts of the host.
        (Some(mounts), None) => mounts.enter_host()?,
        (None, None) => {}
    }
    if switches_ids {
        set_effective_ids(state.facts.script)?;
    }
    let cloned = clone_spawner(flags, cgroup);
    if matches!(cloned, Ok(CloneResult::Child)) {
        return Ok((CloneResult::Child, number));
    }
    if switches_ids {
        set_effective_ids(Ids { uid: 0, gid: 0 })?;
    }
    if let Some(mounts) = &state.mounts {
        mounts.return_to_idle()?;
    }
    Ok((cloned?, number))
}

fn clone_flag(namespace: Namespace) -> u64 {
    let flag = match namespace {
        Namespace::User => libc::CLONE_NEWUSER,
        Namespace::Mount => libc::CLONE_NEWNS,
        Namespace::Pid => libc::CLONE_NEWPID,
        Namespace::Ipc => libc::CLONE_NEWIPC,
        Namespace::Uts => libc::CLONE_NEWUTS,
        Namespace::Cgroup => libc::CLONE_NEWCGROUP,
    };
    flag as u64
}

/// Sets the effective ids; the securebits preserve the capabilities.
fn set_effective_ids(ids: Ids) -> io::Result<()> {
    rustix::thread::set_thread_res_gid(None, Gid::from_raw(ids.gid), None)?;
    rustix::thread::set_thread_res_uid(None, Uid::from_raw(ids.uid), None)?;
    Ok(())
}
