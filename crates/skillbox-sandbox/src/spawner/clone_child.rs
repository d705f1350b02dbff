//! Applies the steps of the spawner, up to the clone of the child.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, openat};
use rustix::process::{Gid, Uid};

use super::clone_spawner::clone_spawner;
use super::cloned_child::{CloneSide, ClonedChild};
use super::listening_sockets::open_listening_sockets;
use super::mount_namespaces::enter_mount_namespace;
use super::network::NetworkKind;
use super::state::SpawnerState;
use crate::cgroup::RunCgroup;
use crate::host::UidGid;
use crate::kernel::clone::CloneResult;
use crate::plan::{Namespace, SpawnOp, Step, spawn_steps};
use crate::profile::Need;
use crate::protocol::StepFailure;

/// Applies the spawner's steps and clones the child. Returns in both processes.
pub(super) fn spawn_child(state: &mut SpawnerState, steps: &[Step]) -> Result<CloneSide, StepFailure> {
    let mut failed_preferred_steps = Vec::new();
    let mut cgroup: Option<RunCgroup> = None;
    let mut sockets = Vec::new();
    for (step, op) in spawn_steps(steps) {
        match op {
            SpawnOp::CreateCgroup(limits) => {
                let created = match &mut state.cgroups {
                    Some(cgroups) => cgroups.create(limits),
                    None => Err(io::Error::from_raw_os_error(libc::ENOENT)),
                };
                match created.map_err(|error| StepFailure::of_step(step, "create a control group", &error)) {
                    Ok(created) => cgroup = Some(created),
                    Err(failure) if step.need == Need::Preferred => failed_preferred_steps.push(failure),
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
            SpawnOp::Listen(ports) => {
                sockets = open_listening_sockets(ports)
                    .map_err(|error| StepFailure::of_step(step, "listen for the allowed hosts", &error))?;
            }
            // `clone_from_template` enters the mount namespace of the host, because the plan has no template.
            SpawnOp::UseHostMounts => {}
            SpawnOp::Clone {
                namespaces,
                into_cgroup,
            } => {
                let clone_cgroup = cgroup
                    .as_ref()
                    .filter(|_| *into_cgroup)
                    .and_then(RunCgroup::directory_for_clone);
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
                        failed_preferred_steps,
                        mount_namespace: open_mount_namespace_of(state, pid),
                        sockets,
                        template,
                    }),
                    CloneResult::Child => {
                        if let Some(affinity) = state.affinity {
                            // After a failure the child keeps the affinity of the spawner: it is slower, but works.
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

/// Opens the mount namespace of a child; none if the child has ended already. Without the descriptor, the kernel
/// unmounts everything while the child dies, which only delays the result of the run.
fn open_mount_namespace_of(state: &SpawnerState, pid: i32) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let proc = &state.mount_namespaces.as_ref()?.proc;
    openat(proc, format!("{pid}/ns/mnt"), flags, Mode::empty()).ok()
}

/// The number of the template that a child with these steps would start from now; none if the steps use no template.
pub(super) fn current_template_number(state: &mut SpawnerState, steps: &[Step]) -> Result<Option<u64>, StepFailure> {
    match &state.mount_namespaces {
        Some(mounts) => Ok(state.templates.get_or_build(mounts, steps)?.map(|(_, number)| number)),
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

/// Clones a child whose mounts are a copy of the template. Returns the number of the template as well. During the clone
/// the spawner has the effective ids of the script, so that the child may write its id maps itself, without a
/// handshake.
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
    let template = match &state.mount_namespaces {
        Some(mounts) => state
            .templates
            .get_or_build(mounts, steps)
            .map_err(CloneError::Template)?,
        None => None,
    };
    let number = template.map(|(_, number)| number);
    match (&state.mount_namespaces, template) {
        (_, Some((template, _))) => enter_mount_namespace(template.as_fd())?,
        // A run without a mount namespace sees the mounts of the host.
        (Some(mounts), None) => mounts.enter_host_namespace()?,
        (None, None) => {}
    }
    if switches_ids {
        set_effective_ids(state.facts.script_ids)?;
    }
    let cloned = clone_spawner(flags, cgroup);
    if matches!(cloned, Ok(CloneResult::Child)) {
        return Ok((CloneResult::Child, number));
    }
    if switches_ids {
        set_effective_ids(UidGid { uid: 0, gid: 0 })?;
    }
    if let Some(mounts) = &state.mount_namespaces {
        mounts.return_to_idle_namespace()?;
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

/// Sets the effective ids. The capabilities stay, because of `SECBIT_NO_SETUID_FIXUP`.
fn set_effective_ids(ids: UidGid) -> io::Result<()> {
    rustix::thread::set_thread_res_gid(None, Gid::from_raw(ids.gid), None)?;
    rustix::thread::set_thread_res_uid(None, Uid::from_raw(ids.uid), None)?;
    Ok(())
}
