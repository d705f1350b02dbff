//! One launch: from a parked sandbox where one fits, from the beginning otherwise.

use std::os::fd::OwnedFd;

use rustix::fs::{FileType, fchown, fstat};
use rustix::process::{Gid, Uid};

use super::birth::{Birth, Newborn};
use super::protocol::{Orders, StepFailure};
use super::set_up::Spawning;
use super::sources::open_sources;
use crate::child;
use crate::plan::{Ids, Op};

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

/// A child that runs, or is about to.
pub(super) struct Launched {
    pub child: Newborn,
    pub answers: OwnedFd,
    /// Whether it was there before the run.
    pub was_parked: bool,
}

/// Starts the command of the orders. The child, where one is cloned here, never returns.
pub(super) fn launch(
    spawning: &mut Spawning,
    orders: &Orders<'_>,
    descriptors: Descriptors,
) -> Result<Launched, StepFailure> {
    let mounts = open_sources(spawning, orders, &descriptors)?;
    let Descriptors { answers, stdio, .. } = descriptors;
    if spawning.facts.privileged {
        give_pipes(&stdio, spawning.facts.script);
    }
    if let Some(child) = spawning.release_parked(orders, &mounts, &stdio, &answers) {
        return Ok(Launched {
            child,
            answers,
            was_parked: true,
        });
    }
    match spawning.give_birth(&orders.steps)? {
        Birth::Parent(child) => Ok(Launched {
            child,
            answers,
            was_parked: false,
        }),
        Birth::Child { doors } => {
            let mut belongings = spawning.belongings(mounts);
            belongings.doors = doors;
            belongings.stdio = Some(stdio);
            belongings.answers = Some(answers);
            child::run(orders, belongings)
        }
    }
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
