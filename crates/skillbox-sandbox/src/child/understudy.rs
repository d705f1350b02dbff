//! Pid 2 of a sandbox that was made ahead: it knows its part and waits for its run.

use std::borrow::Cow;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::landlock::Rules;
use super::{Belongings, Child, SETUP_FAILED, exit};
use crate::kernel::socket;
use crate::kernel::spawn::candidates;
use crate::plan::{Command, LandlockRule, Op, Step};
use crate::spawner::protocol::{Answer, Orders, Part, PartStep, decode};

/// As much of the buffer as most runs fill.
const WARM: usize = 8 << 10;

/// Waits, and becomes the command of the run that is sent through `bell`. Does not return.
///
/// Pid 1 says through `confined` when it has confined itself: not before then may it share a run's descriptors.
pub(super) fn wait_for_the_run(mut child: Child<'_>, bell: OwnedFd, confined: &OwnedFd) -> ! {
    let Ok(known) = child.rehearse() else {
        exit(SETUP_FAILED)
    };
    if rustix::io::read(confined, &mut [0]) != Ok(1) {
        exit(SETUP_FAILED)
    }
    let mut buffer = vec![0; socket::MAX_MESSAGE];
    buffer[..WARM].fill(1);
    go_through_the_motions(&known);
    let Ok(received) = socket::receive(bell.as_fd(), &mut buffer).and_then(socket::Received::whole) else {
        exit(SETUP_FAILED)
    };
    if received.length == 0 {
        exit(0)
    }
    let Some(orders) = decode(&buffer[..received.length])
        .ok()
        .and_then(|part| put_together(known, part))
    else {
        exit(SETUP_FAILED)
    };
    let Child {
        mut belongings,
        rules,
        join_error,
        untold,
        ..
    } = child;
    if belongings.take_over(&orders, received.descriptors, bell).is_none() {
        exit(SETUP_FAILED)
    }
    let mut child = Child {
        rules,
        join_error,
        is_the_command: true,
        ..Child::new(&orders, belongings)
    };
    // Steps up to here have the same numbers in every plan that this sandbox can serve.
    for failure in untold {
        child.tell(&Answer::Degraded(failure));
    }
    child.release();
    exit(SETUP_FAILED)
}

/// Reads a message like that of a run, for nothing: what was not touched since the fork is brought in, or copied, at the
/// first touch, and that would be in the midst of the run.
fn go_through_the_motions(known: &[Step]) {
    let variable = c"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned();
    let command = Command {
        argv: vec![c"bash".to_owned(), c"-c".to_owned(), variable.clone()],
        env: vec![variable; 8],
    };
    let part = Part {
        steps: known
            .iter()
            .map(|step| PartStep::Brought(Cow::Borrowed(step)))
            .collect(),
        command: Cow::Owned(command),
    };
    let bytes = postcard::to_stdvec(&part).unwrap_or_default();
    let orders = decode(&bytes).ok().and_then(|part| put_together(Vec::new(), part));
    if let Some(orders) = orders {
        std::hint::black_box(candidates(&orders.command.argv[0], &orders.command.env));
    }
    touch_the_stack();
}

/// As deep as the steps of a run go.
#[inline(never)]
fn touch_the_stack() {
    std::hint::black_box(&mut [1_u8; 24 << 10]);
}

/// The steps of the run, with those that were known before at their places.
fn put_together(known: Vec<Step>, part: Part<'static>) -> Option<Orders<'static>> {
    let mut known = known.into_iter();
    let mut steps = Vec::with_capacity(part.steps.len());
    for step in part.steps {
        steps.push(match step {
            PartStep::Brought(step) => step.into_owned(),
            PartStep::Known { number } => Step {
                number,
                ..known.next()?
            },
        });
    }
    // A layer that the run does not mention would be a layer that it does not have.
    known.next().is_none().then_some(Orders {
        steps: Cow::Owned(steps),
        command: part.command,
    })
}

impl Child<'_> {
    /// Does what can be done without the run, and returns the steps that still have to be taken in it.
    fn rehearse(&mut self) -> io::Result<Vec<Step>> {
        rustix::process::setsid()?;
        let orders = self.orders;
        for step in orders.steps.iter() {
            match &step.op {
                Op::EnterCgroup => self.join_error = self.join_groups().err(),
                Op::Landlock {
                    abi,
                    files: Some(files),
                    refuse_tcp,
                    scope,
                } => {
                    let (late, early): (Vec<_>, Vec<_>) = files
                        .iter()
                        .cloned()
                        .partition(|rule| is_mounted_later(rule, &orders.steps));
                    // What fails here fails again in its turn, and is told there.
                    self.rules = Rules::new(*abi, true, *refuse_tcp, *scope)
                        .and_then(|rules| rules.grant(&early))
                        .ok()
                        .map(|rules| (rules, late));
                }
                _ => {}
            }
        }
        let known = orders.steps.iter().filter(|step| step.op.is_rehearsed());
        Ok(known.cloned().collect())
    }

    /// Enters the control groups of the run, and lets go of the ways in. What failed is told in the run.
    fn join_groups(&mut self) -> io::Result<()> {
        let mut result = Ok(());
        for door in std::mem::take(&mut self.belongings.doors) {
            if let Err(errno) = rustix::io::write(&door, b"0") {
                result = Err(errno.into());
            }
        }
        result
    }
}

/// Whether a rule is about something that a run brings with it.
fn is_mounted_later(rule: &LandlockRule, steps: &[Step]) -> bool {
    steps.iter().any(|step| match &step.op {
        Op::MountPoint { path, .. } => rule.path.strip_prefix(path.as_str()).is_some_and(is_end_of_name),
        _ => false,
    })
}

fn is_end_of_name(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('/')
}

impl Belongings {
    /// Takes what a run brings, in the order of the message. The answers get the number of the bell, where pid 1 knows
    /// to find them.
    fn take_over(&mut self, orders: &Orders<'_>, descriptors: Vec<OwnedFd>, mut bell: OwnedFd) -> Option<()> {
        let mut list = descriptors.into_iter();
        rustix::io::dup3(list.next()?, &mut bell, rustix::io::DupFlags::CLOEXEC).ok()?;
        self.answers = Some(bell);
        self.stdio = Some([list.next()?, list.next()?, list.next()?]);
        self.mounts = orders
            .steps
            .iter()
            .map(|step| if step.op.mounts_descriptor() { list.next() } else { None })
            .collect();
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{BindKind, FileRights, Phase};
    use crate::profile::Need;

    #[test]
    fn what_lies_below_a_mount_of_the_run_is_late() {
        let step = Step {
            number: 1,
            phase: Phase::Template,
            layers: Vec::new(),
            need: Need::Required,
            op: Op::MountPoint {
                path: "/workspace".to_owned(),
                kind: BindKind::Directory,
            },
        };
        let is_late = |path: &str| {
            let rule = LandlockRule {
                path: path.to_owned(),
                rights: FileRights::Read,
            };
            is_mounted_later(&rule, std::slice::from_ref(&step))
        };
        assert!(is_late("/workspace") && is_late("/workspace/out"));
        assert!(!is_late("/workspaces") && !is_late("/") && !is_late("/usr"));
    }
}
