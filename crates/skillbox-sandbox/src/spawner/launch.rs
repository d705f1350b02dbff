//! One launch: the spawner's own steps, up to the clone.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, fchown, fstat};
use rustix::process::{Gid, Uid};

use super::process::Spawning;
use super::protocol::{Orders, StepFailure};
use super::stage::{DEVICES, Stage, open_path};
use crate::cgroup::Group;
use crate::child::{self, Belongings};
use crate::kernel::clone::Cloned;
use crate::kernel::mount::{self, Depth, NO_DEVICES, NO_SUID, READ_ONLY};
use crate::plan::{Access, Namespace, Op, Step};
use crate::profile::{Backing, Need};

/// The descriptors of a launch, in the order of the protocol.
pub(super) struct Descriptors {
    pub answers: OwnedFd,
    pub stdio: [OwnedFd; 3],
    pub workspace: Option<OwnedFd>,
    pub binds: Vec<OwnedFd>,
}

impl Descriptors {
    /// Takes the list of a message apart.
    pub fn from_message(mut list: Vec<OwnedFd>, orders: &Orders<'_>) -> Option<Self> {
        let mut list = list.drain(..);
        let answers = list.next()?;
        let stdio = [list.next()?, list.next()?, list.next()?];
        let mounts_workspace = orders
            .steps
            .iter()
            .any(|step| matches!(step.op, Op::MountWorkspace { .. }));
        let workspace = if mounts_workspace { Some(list.next()?) } else { None };
        Some(Self {
            answers,
            stdio,
            workspace,
            binds: list.collect(),
        })
    }
}

/// A child that was cloned.
pub(super) struct Launched {
    pub pid: i32,
    pub pidfd: OwnedFd,
    pub answers: OwnedFd,
    pub group: Option<Group>,
    /// Preferred steps of the spawner that failed.
    pub degraded: Vec<StepFailure>,
}

/// Names a failed step.
pub(crate) fn failure(step: &Step, what: &str, error: &io::Error) -> StepFailure {
    StepFailure {
        step: step.number,
        what: what.to_owned(),
        errno: error.raw_os_error().unwrap_or(libc::EIO),
    }
}

/// Does the spawner's steps and clones the child, which never returns from here.
pub(super) fn launch(
    spawning: &mut Spawning,
    orders: &Orders<'_>,
    descriptors: Descriptors,
) -> Result<Launched, StepFailure> {
    let mut degraded = Vec::new();
    let mut group = None;
    let mut belongings = Belongings::new(orders.steps.len());
    collect_mounts(spawning, orders, &descriptors, &mut belongings)?;
    for step in orders.steps.iter() {
        match &step.op {
            Op::CreateCgroup(limits) => {
                let made = match &mut spawning.groups {
                    Some(groups) => groups.create(limits).and_then(|group| Ok((group.doors()?, group))),
                    None => Err(io::Error::from_raw_os_error(libc::ENOENT)),
                };
                match made {
                    Ok((doors, made)) => {
                        belongings.doors = doors;
                        group = Some(made);
                    }
                    Err(error) if step.need == Need::Preferred => {
                        degraded.push(failure(step, "make a control group", &error))
                    }
                    Err(error) => return Err(failure(step, "make a control group", &error)),
                }
            }
            Op::Clone {
                namespaces,
                into_cgroup,
            } => {
                let birthplace = group.as_ref().filter(|_| *into_cgroup).and_then(Group::birthplace);
                let Descriptors { answers, stdio, .. } = descriptors;
                if spawning.facts.privileged {
                    give_pipes(&stdio, spawning);
                }
                let flags = namespaces
                    .iter()
                    .fold(0, |flags, namespace| flags | clone_flag(*namespace));
                let cloned =
                    clone_as_script(spawning, flags, birthplace).map_err(|error| failure(step, "clone", &error))?;
                return match cloned {
                    Cloned::Parent { pid, pidfd } => Ok(Launched {
                        pid,
                        pidfd,
                        answers,
                        group,
                        degraded,
                    }),
                    Cloned::Child => {
                        belongings.stdio = Some(stdio);
                        belongings.answers = Some(answers);
                        child::run(orders, belongings)
                    }
                };
            }
            _ => {}
        }
    }
    Err(StepFailure {
        step: 0,
        what: "the plan has no clone".to_owned(),
        errno: libc::EINVAL,
    })
}

fn clone_flag(namespace: Namespace) -> u64 {
    let flag = match namespace {
        Namespace::User => libc::CLONE_NEWUSER,
        Namespace::Mount => libc::CLONE_NEWNS,
        Namespace::Pid => libc::CLONE_NEWPID,
        Namespace::Network => libc::CLONE_NEWNET,
        Namespace::Ipc => libc::CLONE_NEWIPC,
        Namespace::Uts => libc::CLONE_NEWUTS,
        Namespace::Cgroup => libc::CLONE_NEWCGROUP,
    };
    flag as u64
}

/// Clones with the script's ids in effect, so that the child may map them itself: no handshake is needed then.
fn clone_as_script(spawning: &Spawning, flags: u64, birthplace: Option<BorrowedFd<'_>>) -> io::Result<Cloned> {
    let own_user_namespace = flags & libc::CLONE_NEWUSER as u64 != 0;
    let switch = spawning.facts.privileged && own_user_namespace;
    if switch {
        let script = spawning.facts.script;
        set_effective(script.uid, script.gid)?;
    }
    let cloned = super::process::clone_single_threaded(flags, birthplace);
    if switch && !matches!(cloned, Ok(Cloned::Child)) {
        set_effective(0, 0)?;
    }
    cloned
}

/// Sets the effective ids; the securebits keep the capabilities as they are.
fn set_effective(uid: u32, gid: u32) -> io::Result<()> {
    rustix::thread::set_thread_res_gid(None, Gid::from_raw(gid), None)?;
    rustix::thread::set_thread_res_uid(None, Uid::from_raw(uid), None)?;
    Ok(())
}

/// Pipes that root made belong to the script, or `/dev/stdout` could not be opened inside.
fn give_pipes(stdio: &[OwnedFd; 3], spawning: &Spawning) {
    let script = spawning.facts.script;
    for descriptor in stdio {
        let is_pipe = fstat(descriptor).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
        if is_pipe {
            // A pipe that stays ours still works through its descriptor.
            let _ = fchown(
                descriptor,
                Some(Uid::from_raw(script.uid)),
                Some(Gid::from_raw(script.gid)),
            );
        }
    }
}

/// Opens everything that the child will mount, while the host is in view.
fn collect_mounts(
    spawning: &Spawning,
    orders: &Orders<'_>,
    descriptors: &Descriptors,
    belongings: &mut Belongings,
) -> Result<(), StepFailure> {
    let needs_host = orders.steps.iter().any(|step| {
        matches!(
            step.op,
            Op::BindHost { .. }
                | Op::BindDescriptor { .. }
                | Op::MountWorkspace {
                    backing: Backing::Disk,
                    ..
                }
        )
    });
    if needs_host {
        let Some(stage) = &spawning.stage else {
            return Err(StepFailure {
                step: 0,
                what: "no mount namespace is held".to_owned(),
                errno: libc::EPERM,
            });
        };
        let opened = stage.at_host(|| {
            for (index, step) in orders.steps.iter().enumerate() {
                if let Some(mount) =
                    open_mount(stage, &step.op, descriptors).map_err(|error| failure(step, "open", &error))?
                {
                    belongings.mounts[index] = Some(mount);
                }
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
            Op::HostView => match &spawning.stage {
                Some(stage) => stage.host_mounts(),
                None => continue,
            },
            Op::MountWorkspace {
                backing: Backing::Tmpfs,
                ..
            } => {
                let workspace = descriptors.workspace.as_ref();
                workspace
                    .map(OwnedFd::try_clone)
                    .unwrap_or_else(|| Err(io::Error::from_raw_os_error(libc::EBADF)))
            }
            Op::Devices { .. } => {
                let slash = open_path("/").map_err(|error| failure(step, "open the stage", &error))?;
                mount::copy_tree(slash.as_fd(), &DEVICES[1..], Depth::Whole)
            }
            _ => continue,
        };
        belongings.mounts[index] = Some(mount.map_err(|error| failure(step, "copy a mount", &error))?);
    }
    Ok(())
}

fn open_mount(stage: &Stage, op: &Op, descriptors: &Descriptors) -> io::Result<Option<OwnedFd>> {
    let missing = || io::Error::from_raw_os_error(libc::EBADF);
    match op {
        Op::BindHost { path, optional, .. } => {
            let source = match open_path(path) {
                Err(error) if *optional && error.kind() == io::ErrorKind::NotFound => return Ok(None),
                source => source?,
            };
            copy(stage, source.as_fd(), Access::ReadOnly, stage.depth).map(Some)
        }
        Op::BindDescriptor { index, access, .. } => {
            let source = descriptors.binds.get(usize::from(*index)).ok_or_else(missing)?;
            copy(stage, source.as_fd(), *access, stage.depth).map(Some)
        }
        Op::MountWorkspace {
            backing: Backing::Disk, ..
        } => {
            let source = descriptors.workspace.as_ref().ok_or_else(missing)?;
            copy(stage, source.as_fd(), Access::ReadWrite, stage.depth).map(Some)
        }
        _ => Ok(None),
    }
}

/// A detached copy of the tree at a descriptor, without devices and setuid.
fn copy(stage: &Stage, source: BorrowedFd<'_>, access: Access, depth: Depth) -> io::Result<OwnedFd> {
    let copy = match mount::copy_tree(source, "", depth) {
        // The descriptor was opened in another mount namespace than the one that an ordinary user's spawner holds.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            mount::copy_tree(same_here(source)?.as_fd(), "", depth)?
        }
        copy => copy?,
    };
    let _ = stage;
    let attributes = match access {
        Access::ReadOnly => READ_ONLY | NO_SUID | NO_DEVICES,
        Access::ReadWrite => NO_SUID | NO_DEVICES,
    };
    mount::set_attributes(copy.as_fd(), attributes, depth)?;
    Ok(copy)
}

/// The same file or directory, found by its path in this mount namespace and recognised by its identity.
fn same_here(descriptor: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    use std::os::fd::AsRawFd;
    let link = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
    let path = rustix::fs::readlink(link, Vec::new())?;
    let found = rustix::fs::open(
        path,
        rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC | rustix::fs::OFlags::NOFOLLOW,
        rustix::fs::Mode::empty(),
    )?;
    let (wanted, here) = (fstat(descriptor)?, fstat(&found)?);
    if (wanted.st_dev, wanted.st_ino) == (here.st_dev, here.st_ino) {
        Ok(found)
    } else {
        Err(io::Error::from_raw_os_error(libc::ESTALE))
    }
}
