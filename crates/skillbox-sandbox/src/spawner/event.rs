//! The events that wake the spawner.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::run::Run;

/// What woke the spawner.
pub(super) struct Event {
    /// The spawner received SIGTERM.
    pub is_termination: bool,
    /// The server sent a request, or closed its end.
    pub has_request: bool,
    /// Indices of the runs that died.
    pub dead_runs: Vec<usize>,
    /// Indices of the runs that the server has closed.
    pub closed_runs: Vec<usize>,
    /// Nothing happened in time.
    pub is_timeout: bool,
}

/// A descriptor for SIGTERM, which otherwise ends the spawner before it has cleaned up.
pub(super) fn open_termination_signals() -> io::Result<SignalFd> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTERM);
    signals.thread_block()?;
    Ok(SignalFd::with_flags(
        &signals,
        SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK,
    )?)
}

/// What a watched descriptor of a run reports.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RunEvent {
    Death,
    ServerClose,
}

/// Waits for the server, for a run, for a signal, or until the timeout.
pub(super) fn wait_for_event(
    socket: &OwnedFd,
    signals: &SignalFd,
    runs: &[Run],
    timeout: Option<Duration>,
) -> io::Result<Event> {
    let mut watched = Vec::with_capacity(2 * runs.len() + 2);
    watched.push(PollFd::new(socket, PollFlags::IN));
    watched.push(PollFd::new(signals, PollFlags::IN));
    // The run and the event of each descriptor after the first two.
    let mut run_events = Vec::with_capacity(2 * runs.len());
    for (index, run) in runs.iter().enumerate() {
        if let Some(pidfd) = run.watched_pidfd() {
            watched.push(PollFd::new(pidfd, PollFlags::IN));
            run_events.push((index, RunEvent::Death));
        }
        if let Some(answers) = run.watched_answers() {
            watched.push(PollFd::new(answers, PollFlags::empty()));
            run_events.push((index, RunEvent::ServerClose));
        }
    }
    let timeout = timeout.map(|timeout| Timespec {
        tv_sec: timeout.as_secs().cast_signed(),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let count = loop {
        match poll(&mut watched, timeout.as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            result => break result?,
        }
    };
    let has_event = |index: usize| !watched[index].revents().is_empty();
    let runs_with = |wanted: RunEvent| {
        let events = run_events.iter().enumerate().filter(|(_, (_, event))| *event == wanted);
        events
            .filter(|(position, _)| has_event(position + 2))
            .map(|(_, (index, _))| *index)
            .collect()
    };
    Ok(Event {
        is_termination: has_event(1),
        has_request: has_event(0),
        dead_runs: runs_with(RunEvent::Death),
        closed_runs: runs_with(RunEvent::ServerClose),
        is_timeout: count == 0,
    })
}
