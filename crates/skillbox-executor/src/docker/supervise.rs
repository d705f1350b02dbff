//! Watching a command in its container, through what the runner tells.

use std::time::{Duration, Instant};

use skillbox_model::{Limits, OutputBytes, RunEvent, Stream};
use skillbox_runner::{End, KilledBy, ToExecutor, ToRunner};

use super::DockerError;
use super::line::{Heard, Line};
use crate::local::Killed;
use crate::{Cancel, Capture, EventSink};

/// A runner that is asked to end everything answers within this, or its container is ended with it.
pub(super) const GRACE: Duration = Duration::from_secs(10);
/// Checking what was sent takes as long as reading it.
const START: Duration = Duration::from_secs(60);
/// Standard input that may be on its way at once.
const WINDOW: usize = 64 << 10;

/// What watching gave.
pub(super) struct Watched {
    pub stdout: Capture,
    pub stderr: Capture,
    pub killed: Option<Killed>,
    /// What the runner told at the end; none when it did not answer.
    pub end: Option<End>,
    pub duration: Duration,
}

/// Waits for the end of a command that was started.
pub(super) fn supervise(
    line: &mut Line,
    limits: &Limits,
    stdin: &[u8],
    cancel: &Cancel,
    events: &mut EventSink<'_>,
    complaint: &dyn Fn() -> String,
) -> Result<Watched, DockerError> {
    let begin = Instant::now();
    events.emit(|| RunEvent::Started);
    let cap = usize::try_from(limits.output.bytes()).unwrap_or(usize::MAX);
    let mut watched = Watched {
        stdout: Capture::new(cap),
        stderr: Capture::new(cap),
        killed: None,
        end: None,
        duration: Duration::ZERO,
    };
    let mut input = Input {
        rest: stdin,
        on_the_way: 0,
    };
    input.send(line)?;
    let mut deadline = begin + limits.wall;
    loop {
        let switch = watched.killed.is_none().then_some(cancel);
        let reason = match line.hear(deadline, switch)? {
            Heard::Output(stream, data) => {
                let capture = match stream {
                    Stream::Stdout => &mut watched.stdout,
                    Stream::Stderr => &mut watched.stderr,
                };
                let offset = capture.total();
                capture.push(&data);
                events.emit(|| RunEvent::Output {
                    stream,
                    text: OutputBytes(data),
                    offset,
                });
                // A flood must not keep the deadline from being seen.
                (Instant::now() >= deadline).then_some(Killed::Deadline)
            }
            Heard::Message(ToExecutor::StdinTaken(count)) => {
                input.on_the_way = input.on_the_way.saturating_sub(count as usize);
                input.send(line)?;
                None
            }
            Heard::Message(ToExecutor::Ended(end)) => {
                if watched.killed.is_none() && end.killed_by == Some(KilledBy::Cpu) {
                    watched.killed = Some(Killed::Cpu);
                }
                // A command that ended before it saw our order ended by itself.
                if end.killed_by.is_none() && watched.killed.is_some() && end.exit_code.is_some() {
                    watched.killed = None;
                }
                watched.duration = Duration::from_micros(end.micros);
                watched.end = Some(end);
                return Ok(watched);
            }
            Heard::Message(other) => return Err(unexpected(&other)),
            Heard::Data(_) => None,
            Heard::Cancelled => Some(Killed::Cancelled),
            Heard::Nothing => Some(Killed::Deadline),
            Heard::Closed => {
                return Err(DockerError::Lost {
                    during: "in the middle of the run",
                    cause: with_complaint("its line ended", complaint),
                });
            }
        };
        match (reason, watched.killed) {
            (None, _) => {}
            (Some(reason), None) => {
                watched.killed = Some(reason);
                line.tell(&ToRunner::Kill)?;
                deadline = Instant::now() + GRACE;
            }
            (Some(_), Some(_)) => {
                watched.duration = begin.elapsed();
                return Ok(watched);
            }
        }
    }
}

/// Waits until the runner has checked everything and started the command; gives why it could not be executed.
pub(super) fn wait_for_start(line: &mut Line, complaint: &dyn Fn() -> String) -> Result<Option<i32>, DockerError> {
    let lost = |cause: &str| DockerError::Lost {
        during: "before the start",
        cause: with_complaint(cause, complaint),
    };
    match line.hear(Instant::now() + START, None)? {
        Heard::Message(ToExecutor::Started { exec_error }) => Ok(exec_error),
        Heard::Message(ToExecutor::Refused { reason, is_full: true }) => Err(DockerError::TooMuch { reason }),
        Heard::Message(ToExecutor::Refused { reason, .. }) => Err(DockerError::Refused { reason }),
        Heard::Message(other) => Err(unexpected(&other)),
        Heard::Nothing => Err(lost("it does not answer")),
        _ => Err(lost("its line ended")),
    }
}

pub(super) fn with_complaint(cause: &str, complaint: &dyn Fn() -> String) -> String {
    match complaint() {
        text if text.is_empty() => cause.to_owned(),
        text => format!("{cause}; it said: {text}"),
    }
}

pub(super) fn unexpected(message: &ToExecutor) -> DockerError {
    let shown = format!("{message:?}");
    DockerError::Refused {
        reason: format!("it said {} out of turn", shown.chars().take(80).collect::<String>()),
    }
}

/// Standard input, sent no faster than it is taken.
struct Input<'a> {
    rest: &'a [u8],
    on_the_way: usize,
}

impl Input<'_> {
    fn send(&mut self, line: &mut Line) -> Result<(), DockerError> {
        let room = WINDOW.saturating_sub(self.on_the_way);
        if self.rest.is_empty() || room == 0 {
            return Ok(());
        }
        let (now, later) = self.rest.split_at(self.rest.len().min(room));
        line.data(now)?;
        self.on_the_way += now.len();
        self.rest = later;
        if later.is_empty() {
            line.tell(&ToRunner::StdinEnd)?;
        }
        Ok(())
    }
}
