//! Supervises a command in its container, based on the messages of the runner.

use std::time::{Duration, Instant};

use skillbox_model::{Limits, RunEvent, Stream};
use skillbox_runner::{CommandResult, KillCause, ToExecutor, ToRunner};

use super::DockerError;
use super::runner_connection::{ConnectionEvent, RunnerConnection};
use crate::outcome::KillReason;
use crate::output_stream::OutputStream;
use crate::{CancelToken, EventSink, Redactor};

/// The runner must answer a kill request within this time. Otherwise the container is killed.
pub(super) const KILL_TIMEOUT: Duration = Duration::from_secs(10);
/// The runner verifies the received files before the start, which takes as long as reading them.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// The number of bytes of standard input that may be unacknowledged.
const STDIN_WINDOW_BYTES: usize = 64 << 10;

/// The result of [`supervise`].
pub(super) struct SupervisionResult {
    pub stdout: OutputStream,
    pub stderr: OutputStream,
    /// Set if this process or the runner killed the command.
    pub kill_reason: Option<KillReason>,
    /// The final message of the runner; none if it did not answer.
    pub end: Option<CommandResult>,
    pub duration: Duration,
}

/// Waits for the end of a started command.
pub(super) fn supervise(
    connection: &mut RunnerConnection,
    limits: &Limits,
    redactor: &Redactor,
    stdin: &[u8],
    cancel: &CancelToken,
    events: &mut EventSink<'_>,
    runner_stderr: &dyn Fn() -> String,
) -> Result<SupervisionResult, DockerError> {
    let begin = Instant::now();
    events.emit(|| RunEvent::Started);
    let cap = usize::try_from(limits.output.bytes()).unwrap_or(usize::MAX);
    let mut result = SupervisionResult {
        stdout: OutputStream::new(Stream::Stdout, cap, redactor),
        stderr: OutputStream::new(Stream::Stderr, cap, redactor),
        kill_reason: None,
        end: None,
        duration: Duration::ZERO,
    };
    let mut stdin_sender = StdinSender {
        rest: stdin,
        in_flight: 0,
    };
    stdin_sender.send(connection)?;
    let mut deadline = begin + limits.wall;
    loop {
        let token = result.kill_reason.is_none().then_some(cancel);
        let reason = match connection.next_event(deadline, token)? {
            ConnectionEvent::Output(stream, data) => {
                let output = match stream {
                    Stream::Stdout => &mut result.stdout,
                    Stream::Stderr => &mut result.stderr,
                };
                output.push(&data, events);
                // Checked here as well, because continuous output would otherwise prevent the timeout event.
                (Instant::now() >= deadline).then_some(KillReason::Deadline)
            }
            ConnectionEvent::Message(ToExecutor::StdinConsumed(count)) => {
                stdin_sender.in_flight = stdin_sender.in_flight.saturating_sub(count as usize);
                stdin_sender.send(connection)?;
                None
            }
            ConnectionEvent::Message(ToExecutor::Ended(end)) => {
                if result.kill_reason.is_none() {
                    result.kill_reason = match end.killed_by {
                        Some(KillCause::CpuLimit) => Some(KillReason::Cpu),
                        Some(KillCause::WorkspaceLimit) => Some(KillReason::Disk),
                        Some(KillCause::Executor) | None => None,
                    };
                }
                // A command that ended before the kill request arrived was not killed.
                if end.killed_by.is_none() && result.kill_reason.is_some() && end.exit_code.is_some() {
                    result.kill_reason = None;
                }
                result.duration = Duration::from_micros(end.duration_micros);
                result.end = Some(end);
                return Ok(result);
            }
            ConnectionEvent::Message(other) => return Err(unexpected_message(&other)),
            ConnectionEvent::Data(_) => None,
            ConnectionEvent::Cancelled => Some(KillReason::Cancelled),
            ConnectionEvent::Timeout => Some(KillReason::Deadline),
            ConnectionEvent::Closed => {
                return Err(DockerError::ContainerLost {
                    during: "during the run",
                    cause: with_runner_stderr("the connection closed", runner_stderr),
                });
            }
        };
        match (reason, result.kill_reason) {
            (None, _) => {}
            (Some(reason), None) => {
                result.kill_reason = Some(reason);
                connection.queue_message(&ToRunner::Kill)?;
                deadline = Instant::now() + KILL_TIMEOUT;
            }
            (Some(_), Some(_)) => {
                result.duration = begin.elapsed();
                return Ok(result);
            }
        }
    }
}

/// Waits until the runner has verified the files and started the command. Returns the errno if the command
/// could not be executed.
pub(super) fn wait_for_start(
    connection: &mut RunnerConnection,
    runner_stderr: &dyn Fn() -> String,
) -> Result<Option<i32>, DockerError> {
    let lost = |cause: &str| DockerError::ContainerLost {
        during: "before the start",
        cause: with_runner_stderr(cause, runner_stderr),
    };
    match connection.next_event(Instant::now() + START_TIMEOUT, None)? {
        ConnectionEvent::Message(ToExecutor::Started { exec_error }) => Ok(exec_error),
        ConnectionEvent::Message(ToExecutor::Refused {
            reason,
            is_workspace_full: true,
        }) => Err(DockerError::InputsTooLarge { reason }),
        ConnectionEvent::Message(ToExecutor::Refused { reason, .. }) => Err(DockerError::JobRefused { reason }),
        ConnectionEvent::Message(other) => Err(unexpected_message(&other)),
        ConnectionEvent::Timeout => Err(lost("it does not answer")),
        _ => Err(lost("the connection closed")),
    }
}

pub(super) fn with_runner_stderr(cause: &str, runner_stderr: &dyn Fn() -> String) -> String {
    match runner_stderr() {
        text if text.is_empty() => cause.to_owned(),
        text => format!("{cause}; its standard error: {text}"),
    }
}

pub(super) fn unexpected_message(message: &ToExecutor) -> DockerError {
    let description = format!("{message:?}");
    DockerError::JobRefused {
        reason: format!(
            "unexpected message {}",
            description.chars().take(80).collect::<String>()
        ),
    }
}

/// Sends standard input no faster than the command reads it.
struct StdinSender<'a> {
    rest: &'a [u8],
    /// The number of bytes that were sent but not yet acknowledged.
    in_flight: usize,
}

impl StdinSender<'_> {
    fn send(&mut self, connection: &mut RunnerConnection) -> Result<(), DockerError> {
        let window_left = STDIN_WINDOW_BYTES.saturating_sub(self.in_flight);
        if self.rest.is_empty() || window_left == 0 {
            return Ok(());
        }
        let (now, later) = self.rest.split_at(self.rest.len().min(window_left));
        connection.queue_data(now)?;
        self.in_flight += now.len();
        self.rest = later;
        if later.is_empty() {
            connection.queue_message(&ToRunner::StdinEnd)?;
        }
        Ok(())
    }
}
