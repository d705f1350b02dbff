//! The sandboxes that live, and what the spawner waits for while they do.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use nix::sys::signalfd::SignalFd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

use super::launch::Launched;
use super::protocol::{Answer, Orders, Reaped, has_pid_namespace, tell};
use crate::cgroup::Group;
use crate::kernel::wait::{Patience, reap};

/// A sandbox, from its launch until the server has read what became of it.
pub(super) struct Run {
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

impl Run {
    /// Tells the server of a launch, and goes on as its run.
    pub fn begin(launched: Launched, orders: &Orders<'_>) -> Self {
        let Launched {
            child,
            answers,
            was_parked,
        } = launched;
        for failure in child.degraded {
            tell(&answers, &Answer::Degraded(failure), &[]);
        }
        let (meters, files) = child
            .group
            .as_ref()
            .map(|group| group.meters().give())
            .unwrap_or_default();
        let mut given = vec![child.pidfd.as_fd()];
        given.extend(files);
        let told = Answer::Launched {
            pid: child.pid,
            meters,
            was_parked,
        };
        tell(&answers, &told, &given);
        Self {
            pid: child.pid,
            alive: Some(child.pidfd),
            answers,
            watch: Watch::over(orders, meters),
            _group: child.group,
            _mounts: child.mounts,
        }
    }

    /// Whether the server may still want something of it.
    pub fn is_kept(&self) -> bool {
        self.alive.is_some() || !self.is_forgotten()
    }

    pub fn kill(&self) {
        if let Some(pid) = Pid::from_raw(self.pid).filter(|_| self.alive.is_some()) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    /// Ends what the server let go of. Mostly it is dead by then; what is not takes its time, and is reaped when it is.
    pub fn end(&mut self) {
        let Some(pidfd) = &self.alive else { return };
        if is_ready(pidfd, PollFlags::IN) {
            self.reap();
        } else {
            self.kill();
            self.watch = Watch::Death;
        }
    }

    /// Reaps a sandbox that died and tells what the kernel counted.
    pub fn reap(&mut self) {
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

/// What woke the spawner.
pub(super) struct Event {
    /// The server's end, or someone's wish.
    pub terminated: bool,
    pub asked: bool,
    /// Runs that died.
    pub died: Vec<usize>,
    /// Runs that the server let go of.
    pub let_go: Vec<usize>,
    /// Nothing did: there is something to prepare, or to forget.
    pub idle: bool,
}

/// Waits until the server asks, a run is at its end, the spawner is to end, or `patience` is over.
pub(super) fn wait(
    socket: &OwnedFd,
    termination: &SignalFd,
    runs: &[Run],
    patience: Option<Duration>,
) -> io::Result<Event> {
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

#[cfg(test)]
mod tests {
    use rustix::process::{PidfdFlags, pidfd_open};

    use super::*;
    use crate::kernel::socket;
    use crate::spawner::process::termination;

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
