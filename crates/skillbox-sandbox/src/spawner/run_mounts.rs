//! Opens the mounts of a run, in the mount namespace of the host.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, fstat, open};

use super::mount_namespaces::MountNamespaces;
use super::owner_idmaps::OwnerIdmaps;
use super::state::SpawnerState;
use crate::host::UidGid;
use crate::kernel::mount::MountCloner;
use crate::plan::{BindAccess, BindOwner, RunOp, Step, WorkspaceMount, run_steps};
use crate::protocol::{ChildPlan, ReceivedLaunchFds, StepFailure};
use crate::root::run_mount_attributes;

/// A step that mounts.
struct MountStep<'a> {
    step: &'a Step,
    source: Option<&'a OwnedFd>,
    kind: MountKind,
}

enum MountKind {
    /// A detached file system, which is attached without a clone.
    Detached,
    /// A tree of the host, which is cloned before it is attached.
    HostTree { access: BindAccess, owner: BindOwner },
}

/// Opens a detached mount for each step that mounts, in the order of the steps.
pub(super) fn open_run_mounts(
    state: &mut SpawnerState,
    plan: &ChildPlan<'_>,
    fds: &ReceivedLaunchFds,
) -> Result<VecDeque<OwnedFd>, StepFailure> {
    let Some(namespaces) = &state.mount_namespaces else {
        return Ok(VecDeque::new());
    };
    let steps: Vec<MountStep<'_>> = run_steps(&plan.steps)
        .filter_map(|(step, op)| mount_step(step, op, fds))
        .collect();
    let clone_all = || -> Result<VecDeque<OwnedFd>, StepFailure> {
        let mounts = steps.iter().map(|step| {
            open_mount(namespaces.mount_cloner, step).map_err(|error| StepFailure::of_step(step.step, "open", &error))
        });
        mounts.collect()
    };
    let needs_host = steps.iter().any(|step| matches!(step.kind, MountKind::HostTree { .. }));
    let mounts = if needs_host {
        namespaces
            .run_in_host_namespace(clone_all)
            .map_err(|error| StepFailure::outside_steps("enter the host's mounts", &error))??
    } else {
        clone_all()?
    };
    if state.facts.privileged {
        for (step, mount) in steps.iter().zip(&mounts) {
            if let MountKind::HostTree {
                owner: BindOwner::Script,
                ..
            } = step.kind
            {
                map_owner_to_script(
                    namespaces,
                    &mut state.owner_idmaps,
                    mount.as_fd(),
                    state.facts.script_ids,
                )
                .map_err(|error| StepFailure::of_step(step.step, "open", &error))?;
            }
        }
    }
    Ok(mounts)
}

fn mount_step<'a>(step: &'a Step, op: &RunOp, fds: &'a ReceivedLaunchFds) -> Option<MountStep<'a>> {
    let (source, kind) = match op {
        RunOp::MountWorkspace {
            source: WorkspaceMount::Tmpfs | WorkspaceMount::Image,
            ..
        } => (fds.workspace.as_ref(), MountKind::Detached),
        RunOp::MountWorkspace {
            source: WorkspaceMount::Directory,
            ..
        } => {
            let kind = MountKind::HostTree {
                access: BindAccess::ReadWrite,
                owner: BindOwner::Unchanged,
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
        RunOp::OpenSkillLayers { .. }
        | RunOp::MakeSkillWritable { .. }
        | RunOp::WorkingDirectory { .. }
        | RunOp::ResourceLimits(_)
        | RunOp::CloseDescriptors
        | RunOp::EnterCgroup
        | RunOp::Exec => return None,
    };
    Some(MountStep { step, source, kind })
}

fn open_mount(mount_cloner: MountCloner, step: &MountStep<'_>) -> io::Result<OwnedFd> {
    let source = step.source.ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))?;
    match step.kind {
        MountKind::Detached => source.try_clone(),
        MountKind::HostTree { access, .. } => clone_host_tree(mount_cloner, source.as_fd(), access),
    }
}

/// A detached clone of the tree at a descriptor, without devices and setuid.
fn clone_host_tree(mount_cloner: MountCloner, source: BorrowedFd<'_>, access: BindAccess) -> io::Result<OwnedFd> {
    let attributes = run_mount_attributes(access);
    match mount_cloner.clone_tree(source, attributes) {
        // The spawner of an ordinary user is in another mount namespace than the one in which the descriptor was
        // opened.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            mount_cloner.clone_tree(reopen_in_this_namespace(source)?.as_fd(), attributes)
        }
        clone => clone,
    }
}

/// Opens the same file or directory in this mount namespace: finds it by its path, and checks its device and inode.
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

fn map_owner_to_script(
    namespaces: &MountNamespaces,
    owner_idmaps: &mut OwnerIdmaps,
    mount: BorrowedFd<'_>,
    script: UidGid,
) -> io::Result<()> {
    match owner_idmaps.apply(namespaces.proc.as_fd(), mount, script) {
        // The filesystem or the kernel has no idmapped mounts. The files keep their owners, and the script can read
        // only those that everybody may read.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS)) => Ok(()),
        result => result,
    }
}
