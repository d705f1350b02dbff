//! One launch: the spawner's own steps, up to the clone.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, fchown, fstat};
use rustix::process::{Gid, Uid};

use super::network::Wanted;
use super::process::clone_single_threaded;
use super::protocol::{Orders, StepFailure};
use super::set_up::Spawning;
use super::sources::open_sources;
use super::stage::enter;
use crate::cgroup::Group;
use crate::child;
use crate::kernel::clone::Cloned;
use crate::plan::{Ids, Namespace, Op, Phase, Step};
use crate::profile::Need;

/// The descriptors of a launch, in the order of the protocol.
pub(super) struct Descriptors {
    pub answers: OwnedFd,
    pub stdio: [OwnedFd; 3],
    pub workspace: Option<OwnedFd>,
    pub binds: Vec<OwnedFd>,
}

impl Descriptors {
    /// Takes the list of a message apart.
    pub fn from_message(list: Vec<OwnedFd>, orders: &Orders<'_>) -> Option<Self> {
        let mut list = list.into_iter();
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
pub(super) fn failure(step: &Step, what: &str, error: &io::Error) -> StepFailure {
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
    let mut group: Option<Group> = None;
    let mut belongings = open_sources(spawning, orders, &descriptors)?;
    let Descriptors { answers, stdio, .. } = descriptors;
    if spawning.facts.privileged {
        give_pipes(&stdio, spawning.facts.script);
    }
    for step in orders.steps.iter().filter(|step| step.phase == Phase::Spawn) {
        match &step.op {
            Op::CreateCgroup(limits) => {
                let made = match &mut spawning.groups {
                    Some(groups) => groups.create(limits),
                    None => Err(io::Error::from_raw_os_error(libc::ENOENT)),
                };
                match made {
                    Ok(made) => group = Some(made),
                    Err(error) if step.need == Need::Preferred => {
                        degraded.push(failure(step, "make a control group", &error));
                    }
                    Err(error) => return Err(failure(step, "make a control group", &error)),
                }
            }
            Op::Network { loopback } => {
                let wanted = if *loopback { Wanted::Loopback } else { Wanted::Empty };
                spawning
                    .go_to_network(wanted)
                    .map_err(|error| failure(step, "make a network namespace", &error))?;
            }
            Op::Clone {
                namespaces,
                into_cgroup,
            } => {
                let birthplace = group.as_ref().filter(|_| *into_cgroup).and_then(Group::birthplace);
                let flags = namespaces
                    .iter()
                    .fold(0, |flags, namespace| flags | clone_flag(*namespace));
                let cloned = spawning
                    .clone_child(orders, flags, birthplace)
                    .map_err(|error| match error {
                        CloneFailure::Template(failure) => failure,
                        CloneFailure::Clone(error) => failure(step, "clone", &error),
                    })?;
                return match cloned {
                    Cloned::Parent { pid, pidfd } => Ok(Launched {
                        pid,
                        pidfd,
                        answers,
                        group,
                        degraded,
                    }),
                    Cloned::Child => {
                        if let Some(group) = group {
                            belongings.doors = group.into_doors();
                        }
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

/// Why there is no child.
enum CloneFailure {
    Template(StepFailure),
    Clone(io::Error),
}

impl From<io::Error> for CloneFailure {
    fn from(error: io::Error) -> Self {
        Self::Clone(error)
    }
}

impl Spawning {
    fn go_to_network(&mut self, wanted: Wanted) -> io::Result<()> {
        match &mut self.network {
            Some(network) => network.go(wanted),
            None => Err(io::Error::from_raw_os_error(libc::EPERM)),
        }
    }

    /// Clones on a copy of the run's root, with the script's ids in effect, so that the child may map them itself: no
    /// handshake is needed then.
    fn clone_child(
        &mut self,
        orders: &Orders<'_>,
        flags: u64,
        birthplace: Option<BorrowedFd<'_>>,
    ) -> Result<Cloned, CloneFailure> {
        let has_network = orders.steps.iter().any(|step| matches!(step.op, Op::Network { .. }));
        if let Some(network) = self.network.as_mut().filter(|_| !has_network) {
            network.go(Wanted::Host)?;
        }
        let switch = self.facts.privileged && flags & libc::CLONE_NEWUSER as u64 != 0;
        let template = match &self.stage {
            Some(stage) => self
                .templates
                .namespace(stage, &orders.steps)
                .map_err(CloneFailure::Template)?,
            None => None,
        };
        match (&self.stage, template) {
            (_, Some(template)) => enter(template.as_fd())?,
            // A run without mounts of its own sees those of the host.
            (Some(stage), None) => stage.enter_host()?,
            (None, None) => {}
        }
        if switch {
            set_effective(self.facts.script)?;
        }
        let cloned = clone_single_threaded(flags, birthplace);
        if matches!(cloned, Ok(Cloned::Child)) {
            return Ok(Cloned::Child);
        }
        if switch {
            set_effective(Ids { uid: 0, gid: 0 })?;
        }
        if let Some(stage) = &self.stage {
            stage.come_back()?;
        }
        Ok(cloned?)
    }
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

/// Sets the effective ids; the securebits keep the capabilities as they are.
fn set_effective(ids: Ids) -> io::Result<()> {
    rustix::thread::set_thread_res_gid(None, Gid::from_raw(ids.gid), None)?;
    rustix::thread::set_thread_res_uid(None, Uid::from_raw(ids.uid), None)?;
    Ok(())
}

/// Pipes that root made belong to the script, or `/dev/stdout` could not be opened inside.
fn give_pipes(stdio: &[OwnedFd; 3], script: Ids) {
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
