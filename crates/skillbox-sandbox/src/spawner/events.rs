//! Waits for the events that the main loop handles.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::run::Run;

/// The events that are ready at one wakeup of the spawner.
pub(super) struct ReadyEvents {
    /// The spawner received SIGTERM.
    pub has_termination_signal: bool,
    /// The server sent a request, or closed its end.
    pub has_request: bool,
    /// Indices of the runs whose sandbox died.
    pub dead_runs: Vec<usize>,
    /// Indices of the runs whose answer socket the server has closed.
    pub closed_runs: Vec<usize>,
    /// The timeout expired without an event.
    pub is_timeout: bool,
}

/// Opens a signalfd(2) for SIGTERM, whose default action would end the spawner before it has cleaned up.
pub(super) fn open_termination_signals() -> io::Result<SignalFd> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTERM);
    signals.thread_block()?;
    Ok(SignalFd::with_flags(
        &signals,
        SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK,
    )?)
}

/// The event that a watched descriptor of a run reports.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RunEvent {
    Death,
    ServerClose,
}

/// Waits until the server, a run or a signal has an event, or until the timeout.
pub(super) fn wait_for_events(
    socket: &OwnedFd,
    signals: &SignalFd,
    runs: &[Run],
    timeout: Option<Duration>,
) -> io::Result<ReadyEvents> {
    let mut watched = Vec::with_capacity(2 * runs.len() + 2);
    watched.push(PollFd::new(socket, PollFlags::IN));
    watched.push(PollFd::new(signals, PollFlags::IN));
    // For each descriptor after the first two: the index of its run, and the event that it reports.
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
    Ok(ReadyEvents {
        has_termination_signal: has_event(1),
        has_request: has_event(0),
        dead_runs: runs_with(RunEvent::Death),
        closed_runs: runs_with(RunEvent::ServerClose),
        is_timeout: count == 0,
    })
}
