//! The spawner's life: take requests, launch, reap, prepare for the next run when idle, and end with the server.
#![expect(
    unsafe_code,
    reason = "a clone is safe only in a process of one thread, which this one is"
)]

use std::borrow::Cow;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, kill_process};

use super::beside::Processors;
use super::launch::{Descriptors, Launched, launch};
use super::protocol::{Answer, Orders, Reaped, Request, StepFailure, answer, decode, from_file};
use super::sanitize::sanitize;
use super::set_up::Spawning;
use crate::cgroup::Group;
use crate::kernel::clone::{Cloned, clone_process};
use crate::kernel::socket;
use crate::kernel::wait::{Patience, reap};
use crate::root::new_workspace;

/// A sandbox, from its launch until the server has read what became of it.
struct Run {
    pid: i32,
    /// None once everything in it is dead and reaped.
    alive: Option<OwnedFd>,
    answers: OwnedFd,
    /// Whether the server learns all about the end by itself: it has meters, and the kernel ends everything at once. Then
    /// the spawner need not wake for it before the server has let go.
    ends_by_itself: bool,
    /// Removed when the run goes, which is when the server let go of the meters.
    _group: Option<Group>,
    _mounts: Option<OwnedFd>,
}

/// Lives as the spawner behind `socket` until the other end closes. Its children may use these processors, where it
/// itself was sent away from one.
pub(super) fn live(socket: OwnedFd, processors: Option<Processors>) -> io::Result<()> {
    let socket = sanitize(socket)?;
    let mut buffer = vec![0; socket::MAX_MESSAGE];
    let first = socket::receive(socket.as_fd(), &mut buffer)?;
    let Ok(Request::Begin(options)) = decode(&buffer[..first.length]) else {
        return Err(io::Error::from_raw_os_error(libc::EPROTO));
    };
    let mut spawning = Spawning::set_up(&options);
    spawning.processors = processors;
    if let Some(answers) = first.descriptors.first() {
        tell(answers, &Answer::Facts(Box::new(spawning.facts.clone())), &[]);
    }
    drop(first);
    spawning.make_ahead();
    let termination = termination()?;
    let mut runs: Vec<Run> = Vec::new();
    loop {
        let patience = if spawning.has_preparations() {
            Some(spawning.slots.until_calm())
        } else {
            spawning.slots.until_idle()
        };
        let event = wait(&socket, &termination, &runs, patience)?;
        if event.terminated {
            break;
        }
        for index in event.changed {
            runs[index].change();
            spawning.slots.ended();
        }
        runs.retain(|run| run.alive.is_some() || !run.is_forgotten());
        if event.asked {
            let received = socket::receive(socket.as_fd(), &mut buffer)?;
            if received.length == 0 {
                break;
            }
            runs.extend(spawning.serve(&buffer[..received.length], received.descriptors));
        } else if event.idle && spawning.has_preparations() {
            if spawning.slots.until_calm().is_zero() {
                spawning.prepare_next();
            }
        } else if event.idle {
            spawning.slots.forget_idle();
        }
    }
    for run in &runs {
        run.kill();
    }
    for mut run in runs {
        run.change();
    }
    Ok(())
}

/// What woke the spawner.
struct Event {
    /// The server's end, or someone's wish.
    terminated: bool,
    asked: bool,
    /// Runs that died or were let go.
    changed: Vec<usize>,
    /// Nothing did: there is something to prepare, or to forget.
    idle: bool,
}

fn wait(socket: &OwnedFd, termination: &SignalFd, runs: &[Run], patience: Option<Duration>) -> io::Result<Event> {
    let mut watched = Vec::with_capacity(runs.len() + 2);
    watched.push(PollFd::new(socket, PollFlags::IN));
    watched.push(PollFd::new(termination, PollFlags::IN));
    watched.extend(runs.iter().map(|run| match &run.alive {
        Some(pidfd) if !run.ends_by_itself => PollFd::new(pidfd, PollFlags::IN),
        _ => PollFd::new(&run.answers, PollFlags::empty()),
    }));
    let patience = patience.map(|patience| Timespec {
        tv_sec: patience.as_secs().cast_signed(),
        tv_nsec: patience.subsec_nanos().into(),
    });
    let count = loop {
        match poll(&mut watched, patience.as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            result => break result?,
        }
    };
    let happened = |index: usize| !watched[index].revents().is_empty();
    let changed = (0..runs.len()).filter(|index| happened(index + 2)).collect();
    Ok(Event {
        terminated: happened(1),
        asked: happened(0),
        changed,
        idle: count == 0,
    })
}

/// A wish to end becomes readable instead of ending the spawner where it stands: there is something to clean up.
fn termination() -> io::Result<SignalFd> {
    let mut wish = SigSet::empty();
    wish.add(Signal::SIGTERM);
    wish.thread_block()?;
    Ok(SignalFd::with_flags(
        &wish,
        SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK,
    )?)
}

/// Clones the spawner.
pub(super) fn clone_single_threaded(flags: u64, birthplace: Option<BorrowedFd<'_>>) -> io::Result<Cloned> {
    // SAFETY: the spawner has one thread: it is a fresh process, started by exec or by a fork before any thread
    // existed, and nothing in this crate starts one.
    unsafe { clone_process(flags, birthplace) }
}

impl Spawning {
    fn serve(&mut self, message: &[u8], mut descriptors: Vec<OwnedFd>) -> Option<Run> {
        if descriptors.is_empty() {
            return None;
        }
        let from_file = match decode(message) {
            Ok(Request::LaunchFromFile { length }) if descriptors.len() > 1 => {
                from_file(&descriptors.remove(1), length).ok()
            }
            _ => None,
        };
        let message = from_file.as_deref().unwrap_or(message);
        let refuse = |what: &str, error: &io::Error, to: &OwnedFd| {
            let errno = error.raw_os_error().unwrap_or(libc::EIO);
            tell(
                to,
                &Answer::Failed(StepFailure {
                    step: 0,
                    what: what.to_owned(),
                    errno,
                }),
                &[],
            );
        };
        match decode(message) {
            Ok(Request::Launch { steps, command }) => match self.known_steps.read(&steps) {
                Ok(steps) => {
                    let orders = Orders {
                        steps: Cow::Borrowed(&steps),
                        command,
                    };
                    return self.serve_launch(&orders, descriptors);
                }
                Err(error) => refuse("read the plan", &error, &descriptors[0]),
            },
            Ok(Request::Prepare { steps }) => {
                // What cannot be read is told when the launch comes.
                if let Ok(steps) = self.known_steps.read(&steps) {
                    self.slots.ask_for(&steps);
                    if self.is_for_one() {
                        // The one run is about to come, and would have to wait for the same.
                        self.park_one();
                    }
                }
            }
            Ok(Request::KeepSlots { limit }) => self.slots.keep(limit),
            Ok(Request::CreateWorkspace { bytes, inodes }) => match new_workspace(bytes, inodes, self.facts.script) {
                Ok(workspace) => tell(&descriptors[0], &Answer::Workspace, &[workspace.as_fd()]),
                Err(error) => refuse("make a workspace", &error, &descriptors[0]),
            },
            Ok(Request::LaunchFromFile { .. } | Request::Begin(_)) => {
                refuse(
                    "read the request",
                    &io::Error::from_raw_os_error(libc::EBADMSG),
                    &descriptors[0],
                );
            }
            Err(error) => refuse("read the request", &error, &descriptors[0]),
        }
        None
    }

    fn serve_launch(&mut self, orders: &Orders<'_>, descriptors: Vec<OwnedFd>) -> Option<Run> {
        let answers = descriptors[0].try_clone().ok()?;
        let Some(descriptors) = Descriptors::from_message(descriptors, orders) else {
            let failure = StepFailure {
                step: 0,
                what: "count the descriptors".to_owned(),
                errno: libc::EBADMSG,
            };
            tell(&answers, &Answer::Failed(failure), &[]);
            return None;
        };
        self.launched();
        match launch(self, orders, descriptors) {
            Ok(Launched {
                child,
                answers,
                was_parked,
            }) => {
                for failure in child.degraded {
                    tell(&answers, &Answer::Degraded(failure), &[]);
                }
                let group = child.group;
                let (meters, files) = group.as_ref().map(|group| group.meters().give()).unwrap_or_default();
                let mut given = vec![child.pidfd.as_fd()];
                given.extend(files);
                let pid = child.pid;
                let ends_by_itself = meters != 0 && orders.has_pid_namespace();
                let launched = Answer::Launched {
                    pid,
                    meters,
                    was_parked,
                };
                tell(&answers, &launched, &given);
                Some(Run {
                    pid,
                    alive: Some(child.pidfd),
                    answers,
                    ends_by_itself,
                    _group: group,
                    _mounts: child.mounts,
                })
            }
            Err(failure) => {
                tell(&answers, &Answer::Failed(failure), &[]);
                None
            }
        }
    }
}

impl Run {
    fn kill(&self) {
        if let Some(pid) = Pid::from_raw(self.pid).filter(|_| self.alive.is_some()) {
            let _ = kill_process(pid, rustix::process::Signal::KILL);
        }
    }

    /// Reaps a sandbox that died, or that the server let go of, and tells what the kernel counted.
    fn change(&mut self) {
        if self.ends_by_itself {
            // A server that went away in the middle leaves something to be killed.
            self.kill();
        }
        if self.alive.take().is_none() {
            return;
        }
        let mut reaped = Reaped::default();
        if let Ok(Some(ended)) = reap(Some(self.pid), Patience::Wait) {
            reaped.cpu = ended.cpu;
            reaped.peak_memory = Some(ended.peak_bytes);
        }
        tell(&self.answers, &Answer::Reaped(reaped), &[]);
    }

    /// Whether the server has closed its end.
    fn is_forgotten(&self) -> bool {
        let mut watched = [PollFd::new(&self.answers, PollFlags::empty())];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut watched, Some(&at_once)).is_ok_and(|count| count > 0)
    }
}

/// Answers go to a server that may be gone by now; its sandbox then ends by itself.
fn tell(to: &OwnedFd, what: &Answer, descriptors: &[BorrowedFd<'_>]) {
    let _: io::Result<()> = answer(to.as_fd(), what, descriptors);
}
