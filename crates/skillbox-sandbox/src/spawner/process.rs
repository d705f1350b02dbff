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
use super::protocol::{Answer, Orders, Reaped, Request, StepFailure, answer, decode, from_file, has_pid_namespace};
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
    watch: Watch,
    /// Removed when the run goes, which is when the server let go of the meters.
    _group: Option<Group>,
    _mounts: Option<OwnedFd>,
}

/// What the spawner waits for while a sandbox lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watch {
    /// That the server lets go: it has meters, learns of the end by itself, and wants nobody woken before then.
    Server,
    /// That, or the end, which the server is told of.
    Either,
    /// The end alone. The server has let go, or the reaper watches the server itself.
    Death,
}

impl Watch {
    fn over(orders: &Orders<'_>, meters: u8) -> Self {
        match (has_pid_namespace(&orders.steps), meters) {
            (false, _) => Self::Death,
            (true, 0) => Self::Either,
            (true, _) => Self::Server,
        }
    }
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
        for index in event.let_go {
            runs[index].end();
            spawning.slots.ended();
        }
        for index in event.died {
            runs[index].reap();
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
        run.reap();
    }
    Ok(())
}

/// What woke the spawner.
struct Event {
    /// The server's end, or someone's wish.
    terminated: bool,
    asked: bool,
    /// Runs that died.
    died: Vec<usize>,
    /// Runs that the server let go of.
    let_go: Vec<usize>,
    /// Nothing did: there is something to prepare, or to forget.
    idle: bool,
}

fn wait(socket: &OwnedFd, termination: &SignalFd, runs: &[Run], patience: Option<Duration>) -> io::Result<Event> {
    let mut watched = Vec::with_capacity(runs.len() + 2);
    watched.push(PollFd::new(socket, PollFlags::IN));
    watched.push(PollFd::new(termination, PollFlags::IN));
    // Which run each of the rest belongs to, and whether it tells of its death.
    let mut whose = Vec::with_capacity(runs.len());
    for (index, run) in runs.iter().enumerate() {
        if let Some(pidfd) = run.alive.as_ref().filter(|_| run.watch != Watch::Server) {
            watched.push(PollFd::new(pidfd, PollFlags::IN));
            whose.push((index, true));
        }
        if run.alive.is_none() || run.watch != Watch::Death {
            watched.push(PollFd::new(&run.answers, PollFlags::empty()));
            whose.push((index, false));
        }
    }
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
    let happened_to = |is_death: bool| {
        let these = whose.iter().enumerate().filter(|(_, (_, told))| *told == is_death);
        these
            .filter(|(place, _)| happened(place + 2))
            .map(|(_, (index, _))| *index)
            .collect()
    };
    Ok(Event {
        terminated: happened(1),
        asked: happened(0),
        died: happened_to(true),
        let_go: happened_to(false),
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
                let steps = self.known_steps.read(&steps).ok();
                if let Some(steps) = steps.filter(|steps| has_pid_namespace(steps)) {
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
                let watch = Watch::over(orders, meters);
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
                    watch,
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

    /// Ends what the server let go of. Mostly it is dead by then; what is not takes its time, and is reaped when it is.
    fn end(&mut self) {
        let Some(pidfd) = &self.alive else { return };
        if is_ready(pidfd, PollFlags::IN) {
            self.reap();
        } else {
            self.kill();
            self.watch = Watch::Death;
        }
    }

    /// Reaps a sandbox that died and tells what the kernel counted.
    fn reap(&mut self) {
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
        is_ready(&self.answers, PollFlags::empty())
    }
}

fn is_ready(descriptor: &OwnedFd, events: PollFlags) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(descriptor, events)], Some(&at_once)).is_ok_and(|count| count > 0)
}

/// Answers go to a server that may be gone by now; its sandbox is then ended.
fn tell(to: &OwnedFd, what: &Answer, descriptors: &[BorrowedFd<'_>]) {
    let _: io::Result<()> = answer(to.as_fd(), what, descriptors);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{PidfdFlags, pidfd_open};

    /// A process that outlives every test, and what a server holds of it.
    fn lasting(watch: Watch) -> (Run, OwnedFd) {
        #[expect(clippy::disallowed_methods, reason = "a test needs something that lives")]
        #[expect(clippy::zombie_processes, reason = "it is reaped as a sandbox is")]
        let child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let alive = pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).unwrap();
        let (server, answers) = socket::pair().unwrap();
        let run = Run {
            pid,
            alive: Some(alive),
            answers,
            watch,
            _group: None,
            _mounts: None,
        };
        (run, server)
    }

    #[test]
    fn what_the_server_let_go_of_is_killed_and_reaped_when_it_is_dead() {
        let (socket, _server) = socket::pair().unwrap();
        let termination = termination().unwrap();
        let patience = Some(Duration::from_secs(20));
        for watch in [Watch::Server, Watch::Either] {
            let (run, server) = lasting(watch);
            let mut runs = [run];
            let nothing = wait(&socket, &termination, &runs, Some(Duration::ZERO)).unwrap();
            assert!(nothing.idle && nothing.died.is_empty() && nothing.let_go.is_empty());
            drop(server);
            let event = wait(&socket, &termination, &runs, patience).unwrap();
            assert_eq!((event.let_go, event.died), (vec![0], vec![]), "{watch:?}");
            runs[0].end();
            // It was not waited for: it may be one that a kill does not end at once.
            assert_eq!((runs[0].alive.is_some(), runs[0].watch), (true, Watch::Death));
            let event = wait(&socket, &termination, &runs, patience).unwrap();
            assert_eq!((event.let_go, event.died), (vec![], vec![0]));
            runs[0].reap();
            assert!(runs[0].alive.is_none() && runs[0].is_forgotten());
        }
    }

    #[test]
    fn a_reaper_that_watches_the_server_itself_is_left_to_it() {
        let (socket, _server) = socket::pair().unwrap();
        let (run, server) = lasting(Watch::Death);
        let mut runs = [run];
        drop(server);
        let event = wait(&socket, &termination().unwrap(), &runs, Some(Duration::ZERO)).unwrap();
        assert!(event.idle && event.let_go.is_empty());
        runs[0].kill();
        runs[0].reap();
    }
}
