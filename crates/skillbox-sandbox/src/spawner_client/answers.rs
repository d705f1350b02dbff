//! Receives the answers of the spawner and of the child.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::errors::{ANSWER_TIMEOUT, SpawnerError};
use crate::protocol::{Answer, SandboxUsage, StepFailure, receive_answer};

/// Waits for one answer, at most [`ANSWER_TIMEOUT`].
pub(super) fn wait_for_answer(from: &OwnedFd) -> Result<(Answer, Vec<OwnedFd>), SpawnerError> {
    let mut watched = [PollFd::new(from, PollFlags::IN)];
    let timeout = Timespec {
        tv_sec: ANSWER_TIMEOUT.as_secs().cast_signed(),
        tv_nsec: 0,
    };
    loop {
        match poll(&mut watched, Some(&timeout)) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(0) => return Err(SpawnerError::TimedOut),
            Ok(_) => break,
            Err(error) => return Err(SpawnerError::Socket(error.into())),
        }
    }
    match receive_answer(from.as_fd()) {
        Ok(Some(answer)) => Ok(answer),
        Ok(None) => Err(SpawnerError::Exited),
        Err(error) if error.raw_os_error() == Some(libc::ECONNRESET) => Err(SpawnerError::Exited),
        Err(error) => Err(SpawnerError::Socket(error)),
    }
}

/// Whether an answer can be received without waiting.
pub(super) fn has_answer(answers: &OwnedFd) -> Result<bool, SpawnerError> {
    let mut watched = [PollFd::new(answers, PollFlags::IN)];
    let no_wait = Timespec { tv_sec: 0, tv_nsec: 0 };
    let count = poll(&mut watched, Some(&no_wait)).map_err(|error| SpawnerError::Socket(error.into()))?;
    if count == 0 || !watched[0].revents().contains(PollFlags::IN) {
        return Ok(false);
    }
    // A closed socket is readable too, but has no answer.
    let mut first = [0];
    let (length, _) = rustix::net::recv(answers, &mut first, rustix::net::RecvFlags::PEEK)
        .map_err(|error| SpawnerError::Socket(error.into()))?;
    Ok(length > 0)
}

/// The answers to one launch that were received so far. The answers of the spawner and those of the child can be
/// interleaved in any way; each process sends its own in order.
#[derive(Default)]
pub(super) struct LaunchAnswers {
    pub launched: Option<LaunchedAnswer>,
    /// Whether the command was executed, or could not be.
    pub is_exec_done: bool,
    pub exec_error: Option<i32>,
    pub failed_preferred_steps: Vec<StepFailure>,
    pub failure: Option<StepFailure>,
    pub parking_failure: Option<StepFailure>,
    /// The wait(2) status of the command, once it has ended.
    pub command_status: Option<i32>,
    pub usage: Option<SandboxUsage>,
}

/// The content of [`Answer::Launched`].
pub(super) struct LaunchedAnswer {
    pub pid: i32,
    pub usage_mask: u8,
    pub was_parked: bool,
    pub descriptors: Vec<OwnedFd>,
}

impl LaunchAnswers {
    /// Receives answers until the launch has failed, the command was executed, or a parked sandbox has received the
    /// run.
    pub fn receive_until_launched(socket: &OwnedFd) -> Result<Self, SpawnerError> {
        let mut answers = Self::default();
        while answers.failure.is_none() && !answers.is_launched() {
            answers.receive(socket)?;
            if answers.usage.is_some() {
                // Another process killed the child before the command ran.
                return Err(SpawnerError::Exited);
            }
        }
        Ok(answers)
    }

    fn is_launched(&self) -> bool {
        let launched = self.launched.as_ref();
        launched.is_some_and(|launched| self.is_exec_done || launched.was_parked)
    }

    /// Waits for one more answer.
    pub fn receive(&mut self, socket: &OwnedFd) -> Result<(), SpawnerError> {
        let (answer, descriptors) = wait_for_answer(socket)?;
        self.apply(answer, descriptors);
        Ok(())
    }

    fn apply(&mut self, answer: Answer, descriptors: Vec<OwnedFd>) {
        match answer {
            Answer::Launched {
                pid,
                usage_mask,
                was_parked,
            } => {
                self.launched = Some(LaunchedAnswer {
                    pid,
                    usage_mask,
                    was_parked,
                    descriptors,
                });
            }
            Answer::CommandStarted => self.is_exec_done = true,
            Answer::CommandNotExecuted { errno } => {
                self.exec_error = Some(errno);
                self.is_exec_done = true;
            }
            Answer::ParkingFailed(failure) => self.parking_failure = Some(failure),
            Answer::PreferredStepFailed(failure) => self.failed_preferred_steps.push(failure),
            Answer::Failed(failure) => self.failure = Some(failure),
            Answer::CommandEnded { status } => self.command_status = Some(status),
            Answer::SandboxReaped(usage) => self.usage = Some(usage),
            Answer::Facts(_) | Answer::WorkspaceCreated => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::socket;
    use crate::protocol::send_answer;

    #[test]
    fn a_command_that_ends_before_the_spawner_answers_is_not_reported_as_killed() {
        let (ours, theirs) = socket::pair().unwrap();
        for answer in [
            Answer::CommandStarted,
            Answer::CommandEnded { status: 3 << 8 },
            Answer::Launched {
                pid: 7,
                usage_mask: 0,
                was_parked: false,
            },
        ] {
            send_answer(theirs.as_fd(), &answer, &[]).unwrap();
        }
        let answers = LaunchAnswers::receive_until_launched(&ours).unwrap();
        assert_eq!(answers.launched.map(|launched| launched.pid), Some(7));
        assert_eq!(answers.command_status, Some(3 << 8));
    }
}
