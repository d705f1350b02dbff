//! What the child of a run will mount, opened by the spawner while the host is in view.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, fstat, open};

use super::birth::failure;
use super::launch::Descriptors;
use super::owner_maps::OwnerMaps;
use super::protocol::{Orders, StepFailure};
use super::set_up::Spawning;
use super::stage::Stage;
use crate::child::Belongings;
use crate::kernel::mount::Copying;
use crate::plan::{Ids, Op, Ownership};
use crate::profile::Backing;
use crate::root::attributes_of;

impl Spawning {
    /// What a child of this spawner is born with, whatever it will run.
    pub(super) fn belongings(&self, mounts: Vec<Option<OwnedFd>>) -> Belongings {
        let mut belongings = Belongings::new(mounts);
        belongings.copying = self.stage.as_ref().map(|stage| stage.copying);
        belongings.proc = self.stage.as_ref().and_then(|stage| stage.proc.try_clone().ok());
        belongings.spawner = self.own_pidfd.as_ref().and_then(|own| own.try_clone().ok());
        belongings
    }
}

/// Opens everything that the steps of the child mount, by the step's index.
pub(super) fn open_sources(
    spawning: &mut Spawning,
    orders: &Orders<'_>,
    descriptors: &Descriptors,
) -> Result<Vec<Option<OwnedFd>>, StepFailure> {
    let mut mounts: Vec<Option<OwnedFd>> = std::iter::repeat_with(|| None).take(orders.steps.len()).collect();
    let Some(stage) = &spawning.stage else {
        return Ok(mounts);
    };
    let from_host = |op: &Op| {
        matches!(
            op,
            Op::BindDescriptor { .. }
                | Op::MountWorkspace {
                    backing: Backing::Disk,
                    ..
                }
        )
    };
    if orders.steps.iter().any(|step| from_host(&step.op)) {
        let opened = stage.at_host(|| {
            for (index, step) in orders.steps.iter().enumerate().filter(|(_, step)| from_host(&step.op)) {
                let mount =
                    open_bind(stage.copying, &step.op, descriptors).map_err(|error| failure(step, "open", &error))?;
                mounts[index] = Some(mount);
            }
            Ok(())
        });
        opened.map_err(|error| StepFailure {
            step: 0,
            what: "enter the host's mounts".to_owned(),
            errno: error.raw_os_error().unwrap_or(libc::EIO),
        })??;
    }
    for (index, step) in orders.steps.iter().enumerate() {
        let mount = match &step.op {
            Op::MountWorkspace {
                backing: Backing::Tmpfs,
                ..
            } => {
                let workspace = descriptors.workspace.as_ref();
                workspace.map_or_else(|| Err(io::Error::from_raw_os_error(libc::EBADF)), OwnedFd::try_clone)
            }
            Op::BindDescriptor {
                owner: Ownership::Script,
                ..
            } if spawning.facts.privileged => {
                let mount = mounts[index].take();
                show_as_script(stage, &mut spawning.owner_maps, mount, spawning.facts.script)
            }
            _ => continue,
        };
        mounts[index] = Some(mount.map_err(|error| failure(step, "open", &error))?);
    }
    Ok(mounts)
}

fn show_as_script(stage: &Stage, maps: &mut OwnerMaps, mount: Option<OwnedFd>, script: Ids) -> io::Result<OwnedFd> {
    let mount = mount.ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))?;
    match maps.apply(stage.proc.as_fd(), mount.as_fd(), script) {
        // A filesystem or a kernel that cannot: its files stay those of their owners, and what everyone may read can be
        // read.
        Err(error) if !matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS)) => Err(error),
        _ => Ok(mount),
    }
}

/// A detached copy of the tree at a descriptor, without devices and setuid.
fn open_bind(copying: Copying, op: &Op, descriptors: &Descriptors) -> io::Result<OwnedFd> {
    let source = match op {
        Op::BindDescriptor { index, .. } => descriptors.binds.get(usize::from(*index)),
        _ => descriptors.workspace.as_ref(),
    };
    let source = source.ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))?.as_fd();
    match copying.copy(source, attributes_of(op)) {
        // The descriptor was opened in another mount namespace than the one that an ordinary user's spawner holds.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            copying.copy(same_here(source)?.as_fd(), attributes_of(op))
        }
        copy => copy,
    }
}

/// The same file or directory, found by its path in this mount namespace and recognised by its identity.
fn same_here(descriptor: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let path = rustix::fs::readlink(format!("/proc/self/fd/{}", descriptor.as_raw_fd()), Vec::new())?;
    let found = open(path, OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty())?;
    let (wanted, here) = (fstat(descriptor)?, fstat(&found)?);
    if (wanted.st_dev, wanted.st_ino) == (here.st_dev, here.st_ino) {
        Ok(found)
    } else {
        Err(io::Error::from_raw_os_error(libc::ESTALE))
    }
}
