//! The spawner's own steps, up to the clone.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, openat};
use rustix::process::{Gid, Uid};

use super::network::Wanted;
use super::process::clone_single_threaded;
use super::protocol::StepFailure;
use super::set_up::Spawning;
use super::stage::enter;
use crate::cgroup::Group;
use crate::kernel::clone::Cloned;
use crate::plan::{Ids, Namespace, Op, Phase, Step};
use crate::profile::Need;

/// Which side of the clone this is.
pub(super) enum Birth {
    Parent(Newborn),
    /// The child, with the ways into its control groups.
    Child {
        doors: Vec<OwnedFd>,
    },
}

/// A child that was cloned.
pub(super) struct Newborn {
    pub pid: i32,
    pub pidfd: OwnedFd,
    pub group: Option<Group>,
    /// Preferred steps of the spawner that failed.
    pub degraded: Vec<StepFailure>,
    /// Its mounts, kept until nobody waits for its end any more: taking them down is not part of that.
    pub mounts: Option<OwnedFd>,
    /// The number of the template that it started from.
    pub template: Option<u64>,
}

/// Names a failed step.
pub(super) fn failure(step: &Step, what: &str, error: &io::Error) -> StepFailure {
    StepFailure {
        step: step.number,
        what: what.to_owned(),
        errno: error.raw_os_error().unwrap_or(libc::EIO),
    }
}

impl Spawning {
    /// Does the spawner's steps and clones the child.
    pub(super) fn give_birth(&mut self, steps: &[Step]) -> Result<Birth, StepFailure> {
        let mut degraded = Vec::new();
        let mut group: Option<Group> = None;
        for step in steps.iter().filter(|step| step.phase == Phase::Spawn) {
            match &step.op {
                Op::CreateCgroup(limits) => {
                    let made = match &mut self.groups {
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
                    self.go_to_network(wanted)
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
                    let (cloned, template) =
                        self.clone_child(steps, flags, birthplace)
                            .map_err(|error| match error {
                                CloneFailure::Template(failure) => failure,
                                CloneFailure::Clone(error) => failure(step, "clone", &error),
                            })?;
                    return Ok(match cloned {
                        Cloned::Parent { pid, pidfd } => Birth::Parent(Newborn {
                            pid,
                            pidfd,
                            group,
                            degraded,
                            mounts: self.mounts_of(pid),
                            template,
                        }),
                        Cloned::Child => {
                            if let Some(processors) = self.processors {
                                processors.use_all();
                            }
                            Birth::Child {
                                doors: group.map(Group::into_doors).unwrap_or_default(),
                            }
                        }
                    });
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

    fn mounts_of(&self, pid: i32) -> Option<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        openat(
            &self.stage.as_ref()?.proc,
            format!("{pid}/ns/mnt"),
            flags,
            Mode::empty(),
        )
        .ok()
    }

    /// The number of the template that a child with these steps would start from now.
    pub(super) fn template_number(&mut self, steps: &[Step]) -> Result<Option<u64>, StepFailure> {
        match &self.stage {
            Some(stage) => Ok(self.templates.namespace(stage, steps)?.map(|(_, number)| number)),
            None => Ok(None),
        }
    }
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
        steps: &[Step],
        flags: u64,
        birthplace: Option<BorrowedFd<'_>>,
    ) -> Result<(Cloned, Option<u64>), CloneFailure> {
        let has_network = steps.iter().any(|step| matches!(step.op, Op::Network { .. }));
        if let Some(network) = self.network.as_mut().filter(|_| !has_network) {
            network.go(Wanted::Host)?;
        }
        let switch = self.facts.privileged && flags & libc::CLONE_NEWUSER as u64 != 0;
        let template = match &self.stage {
            Some(stage) => self.templates.namespace(stage, steps).map_err(CloneFailure::Template)?,
            None => None,
        };
        let number = template.map(|(_, number)| number);
        match (&self.stage, template) {
            (_, Some((template, _))) => enter(template.as_fd())?,
            // A run without mounts of its own sees those of the host.
            (Some(stage), None) => stage.enter_host()?,
            (None, None) => {}
        }
        if switch {
            set_effective(self.facts.script)?;
        }
        let cloned = clone_single_threaded(flags, birthplace);
        if matches!(cloned, Ok(Cloned::Child)) {
            return Ok((Cloned::Child, number));
        }
        if switch {
            set_effective(Ids { uid: 0, gid: 0 })?;
        }
        if let Some(stage) = &self.stage {
            stage.come_back()?;
        }
        Ok((cloned?, number))
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
