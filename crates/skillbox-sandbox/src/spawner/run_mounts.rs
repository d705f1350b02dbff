//! The mounts of a run, which the spawner opens in the mount namespace of the host.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, fstat, open};

use super::mount_namespaces::MountNamespaces;
use super::owner_maps::OwnerMaps;
use super::state::SpawnerState;
use crate::host::Ids;
use crate::kernel::mount::TreeCloner;
use crate::plan::{Access, Ownership, RunOp, Step, run_steps};
use crate::profile::Backing;
use crate::protocol::{ChildPlan, ReceivedLaunchFds, StepFailure};
use crate::root::run_mount_attributes;

/// A step that mounts, with what it needs.
struct MountStep<'a> {
    step: &'a Step,
    source: Option<&'a OwnedFd>,
    kind: MountKind,
}

enum MountKind {
    /// A filesystem in memory, which is attached as it is.
    Tmpfs,
    /// A tree of the host, which is cloned.
    HostTree { access: Access, owner: Ownership },
}

/// Opens a detached mount for each step that mounts, in the order of the steps.
pub(super) fn open_run_mounts(
    state: &mut SpawnerState,
    plan: &ChildPlan<'_>,
    fds: &ReceivedLaunchFds,
) -> Result<VecDeque<OwnedFd>, StepFailure> {
    let Some(namespaces) = &state.mounts else {
        return Ok(VecDeque::new());
    };
    let steps: Vec<MountStep<'_>> = run_steps(&plan.steps)
        .filter_map(|(step, op)| mount_step(step, op, fds))
        .collect();
    let clone_all = || -> Result<VecDeque<OwnedFd>, StepFailure> {
        let mounts = steps.iter().map(|step| {
            open_mount(namespaces.tree_cloner, step).map_err(|error| StepFailure::of_step(step.step, "open", &error))
        });
        mounts.collect()
    };
    let needs_host = steps.iter().any(|step| matches!(step.kind, MountKind::HostTree { .. }));
    let mounts = if needs_host {
        namespaces
            .with_host(clone_all)
            .map_err(|error| StepFailure::outside_steps("enter the host's mounts", &error))??
    } else {
        clone_all()?
    };
    if state.facts.privileged {
        for (step, mount) in steps.iter().zip(&mounts) {
            if let MountKind::HostTree {
                owner: Ownership::Script,
                ..
            } = step.kind
            {
                show_as_script(namespaces, &mut state.owner_maps, mount.as_fd(), state.facts.script)
                    .map_err(|error| StepFailure::of_step(step.step, "open", &error))?;
            }
        }
    }
    Ok(mounts)
}

fn mount_step<'a>(step: &'a Step, op: &RunOp, fds: &'a ReceivedLaunchFds) -> Option<MountStep<'a>> {
    let (source, kind) = match op {
        RunOp::MountWorkspace {
            backing: Backing::Tmpfs,
            ..
        } => (fds.workspace.as_ref(), MountKind::Tmpfs),
        RunOp::MountWorkspace {
            backing: Backing::Disk, ..
        } => {
            let kind = MountKind::HostTree {
                access: Access::ReadWrite,
                owner: Ownership::Kept,
            };
            (fds.workspace.as_ref(), kind)
        }
        RunOp::BindDescriptor {
            index, access, owner, ..
        } => {
            let kind = MountKind::HostTree {
                access: *access,
                owner: *owner,
            };
            (fds.binds.get(usize::from(*index)), kind)
        }
        RunOp::WorkingDirectory { .. }
        | RunOp::ResourceLimits(_)
        | RunOp::CloseDescriptors
        | RunOp::EnterCgroup
        | RunOp::Exec => return None,
    };
    Some(MountStep { step, source, kind })
}

fn open_mount(tree_cloner: TreeCloner, step: &MountStep<'_>) -> io::Result<OwnedFd> {
    let source = step.source.ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))?;
    match step.kind {
        MountKind::Tmpfs => source.try_clone(),
        MountKind::HostTree { access, .. } => clone_host_tree(tree_cloner, source.as_fd(), access),
    }
}

/// A detached clone of the tree at a descriptor, without devices and setuid.
fn clone_host_tree(tree_cloner: TreeCloner, source: BorrowedFd<'_>, access: Access) -> io::Result<OwnedFd> {
    let attributes = run_mount_attributes(access);
    match tree_cloner.clone_tree(source, attributes) {
        // The descriptor was opened in another mount namespace than the host namespace of an ordinary user's spawner.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            tree_cloner.clone_tree(reopen_in_this_namespace(source)?.as_fd(), attributes)
        }
        clone => clone,
    }
}

/// The same file or directory, found by its path in this mount namespace and recognised by its device and inode.
fn reopen_in_this_namespace(descriptor: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let path = rustix::fs::readlink(format!("/proc/self/fd/{}", descriptor.as_raw_fd()), Vec::new())?;
    let found = open(path, OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty())?;
    let (wanted, here) = (fstat(descriptor)?, fstat(&found)?);
    if (wanted.st_dev, wanted.st_ino) == (here.st_dev, here.st_ino) {
        Ok(found)
    } else {
        Err(io::Error::from_raw_os_error(libc::ESTALE))
    }
}

fn show_as_script(
    namespaces: &MountNamespaces,
    owner_maps: &mut OwnerMaps,
    mount: BorrowedFd<'_>,
    script: Ids,
) -> io::Result<()> {
    match owner_maps.apply(namespaces.proc.as_fd(), mount, script) {
        // A filesystem or a kernel without idmapped mounts. The files keep their owners, and the script can read those
        // that everybody may read.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS)) => Ok(()),
        result => result,
    }
}
