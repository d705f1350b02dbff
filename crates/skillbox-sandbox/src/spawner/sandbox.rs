//! One running sandbox, seen from the server.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, pidfd_send_signal};
use skillbox_model::{Enforcement, ErrorCode, Usage};

use super::errors::{LaunchError, SpawnerError};
use super::handle::wait_for_answer;
use super::protocol::{Answer, Reaped, StepFailure};
use super::sampling;
use crate::cgroup::Meters;
use crate::plan::{LaunchPlan, Namespace, Op};

/// A launched command and everything it started. Dropping it kills them all.
#[derive(Debug)]
pub struct Sandbox {
    pid: i32,
    pidfd: OwnedFd,
    answers: OwnedFd,
    meters: Meters,
    /// Whether a control group counts everything, so that the spawner's count is not needed.
    counts_by_group: bool,
    has_pid_namespace: bool,
    applied: Enforcement,
    exec_error: Option<i32>,
    /// The command's status, where it ended before the spawner had told of its launch.
    ended: Option<i32>,
    finished: bool,
}

/// What spawner and child said. Each of them keeps its own order; between the two there is none.
#[derive(Default)]
struct Said {
    launched: Option<Launched>,
    running: bool,
    exec_error: Option<i32>,
    degraded: Vec<StepFailure>,
    failed: Option<StepFailure>,
    ended: Option<i32>,
    reaped: Option<Reaped>,
}

struct Launched {
    pid: i32,
    meters: u8,
    was_parked: bool,
    descriptors: Vec<OwnedFd>,
}

impl Said {
    /// Listens until the command runs, or is left to a child that was there before and will do without us.
    fn until_it_runs(answers: &OwnedFd) -> Result<Self, SpawnerError> {
        let mut said = Self::default();
        while said.failed.is_none() && !said.is_under_way() {
            said.hear(wait_for_answer(answers)?);
            if said.reaped.is_some() {
                // The child is dead before the command ran: killed from outside.
                return Err(SpawnerError::Gone);
            }
        }
        Ok(said)
    }

    fn is_under_way(&self) -> bool {
        let launched = self.launched.as_ref();
        launched.is_some_and(|launched| self.running || launched.was_parked)
    }

    fn hear(&mut self, (answer, descriptors): (Answer, Vec<OwnedFd>)) {
        match answer {
            Answer::Launched {
                pid,
                meters,
                was_parked,
            } => {
                self.launched = Some(Launched {
                    pid,
                    meters,
                    was_parked,
                    descriptors,
                });
            }
            Answer::Started => self.running = true,
            Answer::NotExecuted { errno } => {
                self.exec_error = Some(errno);
                self.running = true;
            }
            Answer::Degraded(failure) => self.degraded.push(failure),
            Answer::Failed(failure) => self.failed = Some(failure),
            Answer::Ended { status } => self.ended = Some(status),
            Answer::Reaped(reaped) => self.reaped = Some(reaped),
            Answer::Facts(_) | Answer::Workspace => {}
        }
    }
}

/// How a run ended, what it used, and what was enforced.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The end of the command itself.
    pub end: ScriptEnd,
    /// The error of a command that could not be executed; `end` then holds the code that a shell gives.
    pub exec_error: Option<i32>,
    /// CPU time of everything in the sandbox.
    pub cpu: Duration,
    /// What the report tells.
    pub usage: Usage,
    /// The limits that were hit.
    pub hits: LimitHits,
    /// What was enforced, preferred steps that failed taken into account.
    pub applied: Enforcement,
}

/// The end of the command itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptEnd {
    /// It ended by itself with this code.
    Exited(i32),
    /// A signal ended it.
    Signaled(i32),
    /// The whole sandbox was killed before it ended.
    Killed,
}

/// Limits that were hit during a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitHits {
    /// The kernel killed something over the memory limit.
    pub memory: bool,
    /// The kernel refused a process over the limit.
    pub pids: bool,
    /// One process used up its CPU time.
    pub cpu: bool,
}

impl Sandbox {
    /// Waits until the command runs, or is about to.
    pub(super) fn started(plan: &LaunchPlan, answers: OwnedFd) -> Result<Self, LaunchError> {
        let said = Said::until_it_runs(&answers)?;
        if let Some(failure) = said.failed {
            return Err(step_error(plan, failure));
        }
        let mut applied = plan.enforcement.clone();
        for failure in &said.degraded {
            degrade(plan, &mut applied, failure);
        }
        let launched = said.launched.ok_or(SpawnerError::Gone)?;
        let meters = launched.meters;
        let mut descriptors = launched.descriptors.into_iter();
        let pidfd = descriptors.next().ok_or(SpawnerError::Gone)?;
        let namespaces = plan.steps.iter().find_map(|step| match &step.op {
            Op::Clone { namespaces, .. } => Some(namespaces.as_slice()),
            _ => None,
        });
        Ok(Self {
            pid: launched.pid,
            pidfd,
            answers,
            meters: Meters::take(meters, descriptors),
            counts_by_group: meters != 0,
            has_pid_namespace: namespaces.unwrap_or_default().contains(&Namespace::Pid),
            applied,
            exec_error: said.exec_error,
            ended: said.ended,
            finished: false,
        })
    }

    /// A descriptor that becomes readable when everything in the sandbox is dead.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Kills everything in the sandbox. What is dead already stays so.
    pub fn kill(&self) -> io::Result<()> {
        if !self.has_pid_namespace {
            // The reaper must live to kill the others; the end of our side tells it to.
            return match rustix::net::shutdown(&self.answers, rustix::net::Shutdown::Write) {
                Err(rustix::io::Errno::NOTCONN | rustix::io::Errno::PIPE) => Ok(()),
                result => Ok(result?),
            };
        }
        match pidfd_send_signal(&self.pidfd, Signal::KILL) {
            Err(rustix::io::Errno::SRCH) => Ok(()),
            result => Ok(result?),
        }
    }

    /// The CPU time used so far by everything in the sandbox: counted by its control group, or summed up over its
    /// processes where there is none, which misses those that nobody waited for.
    pub fn cpu_used(&self) -> Option<Duration> {
        self.meters.cpu().or_else(|| sampling::cpu_of_tree(self.pid))
    }

    /// Waits until everything is dead and returns what became of it. The plan is the one it was launched by: a child
    /// that was there before the run tells only now if a step failed.
    ///
    /// What is left after this wakes the spawner when it is dropped, to clean up: better after a reply than before.
    pub fn finish(&mut self, plan: &LaunchPlan) -> Result<Ended, LaunchError> {
        wait_for_death(&self.pidfd)?;
        self.finished = true;
        let mut said = Said {
            ended: self.ended,
            exec_error: self.exec_error,
            ..Said::default()
        };
        // What the child had to say came before its death.
        while said.reaped.is_none() && has_answer(&self.answers)? {
            said.hear(wait_for_answer(&self.answers)?);
        }
        // The spawner's word is worth waiting for only when nothing else counts.
        while !self.counts_by_group && said.reaped.is_none() {
            said.hear(wait_for_answer(&self.answers)?);
        }
        if let Some(failure) = said.failed {
            return Err(step_error(plan, failure));
        }
        for failure in &said.degraded {
            degrade(plan, &mut self.applied, failure);
        }
        self.exec_error = said.exec_error;
        let end = said.ended.map_or(ScriptEnd::Killed, script_end);
        let mut reaped = said.reaped.unwrap_or_default();
        self.meters.account(&mut reaped);
        Ok(self.ended(end, reaped))
    }

    fn ended(&self, end: ScriptEnd, reaped: Reaped) -> Ended {
        let end = match (end, self.exec_error) {
            (ScriptEnd::Exited(_), Some(libc::ENOENT | libc::ENOTDIR)) => ScriptEnd::Exited(127),
            (ScriptEnd::Exited(_), Some(_)) => ScriptEnd::Exited(126),
            (end, _) => end,
        };
        Ended {
            end,
            exec_error: self.exec_error,
            cpu: reaped.cpu,
            usage: Usage {
                cpu_ms: u64::try_from(reaped.cpu.as_millis()).unwrap_or(u64::MAX),
                peak_memory_bytes: reaped.peak_memory,
            },
            hits: LimitHits {
                memory: reaped.memory_hit,
                pids: reaped.pids_hit,
                cpu: end == ScriptEnd::Signaled(libc::SIGXCPU),
            },
            applied: self.applied.clone(),
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if !self.finished {
            let _ = self.kill();
        }
    }
}

/// Waits without a deadline: whoever runs the sandbox has one, and kills by it.
fn wait_for_death(pidfd: &OwnedFd) -> Result<(), SpawnerError> {
    let mut watched = [PollFd::new(pidfd, PollFlags::IN)];
    loop {
        match poll(&mut watched, None) {
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(SpawnerError::Socket(error.into())),
            Ok(_) => return Ok(()),
        }
    }
}

fn has_answer(answers: &OwnedFd) -> Result<bool, SpawnerError> {
    let mut watched = [PollFd::new(answers, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let count = poll(&mut watched, Some(&at_once)).map_err(|error| SpawnerError::Socket(error.into()))?;
    if count == 0 || !watched[0].revents().contains(PollFlags::IN) {
        return Ok(false);
    }
    // The end of the other side can be read too, and is no answer.
    let mut first = [0];
    let (length, _) = rustix::net::recv(answers, &mut first, rustix::net::RecvFlags::PEEK)
        .map_err(|error| SpawnerError::Socket(error.into()))?;
    Ok(length > 0)
}

fn script_end(status: i32) -> ScriptEnd {
    if libc::WIFSIGNALED(status) {
        ScriptEnd::Signaled(libc::WTERMSIG(status))
    } else {
        ScriptEnd::Exited(libc::WEXITSTATUS(status))
    }
}

fn degrade(plan: &LaunchPlan, applied: &mut Enforcement, failure: &StepFailure) {
    if let Some(step) = plan.steps.iter().find(|step| step.number == failure.step) {
        let cause = io::Error::from_raw_os_error(failure.errno);
        LaunchPlan::without_step(applied, step, &format!("cannot {}: {cause}", failure.what));
    }
}

fn step_error(plan: &LaunchPlan, failure: StepFailure) -> LaunchError {
    let source = io::Error::from_raw_os_error(failure.errno);
    let Some(step) = plan.steps.iter().find(|step| step.number == failure.step) else {
        return SpawnerError::Refused {
            what: failure.what,
            source,
        }
        .into();
    };
    let code = match &step.op {
        Op::WorkingDirectory { .. } => ErrorCode::InvalidRequest,
        Op::BindDescriptor { .. } if matches!(failure.errno, libc::ELOOP | libc::ENOTDIR | libc::EISDIR) => {
            ErrorCode::PathEscape
        }
        _ if step.layers.is_empty() => ErrorCode::Internal,
        _ => ErrorCode::IsolationUnavailable,
    };
    LaunchError::Step {
        number: step.number,
        step: step.op.to_string(),
        what: failure.what,
        code,
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::super::protocol::answer;
    use super::*;
    use crate::kernel::socket;

    #[test]
    fn a_command_that_ends_before_the_spawner_speaks_is_not_taken_for_killed() {
        let (ours, theirs) = socket::pair().unwrap();
        let tell = |what: Answer| answer(theirs.as_fd(), &what, &[]).unwrap();
        tell(Answer::Started);
        tell(Answer::Ended { status: 3 << 8 });
        tell(Answer::Launched {
            pid: 7,
            meters: 0,
            was_parked: false,
        });
        let said = Said::until_it_runs(&ours).unwrap();
        assert_eq!(said.launched.map(|launched| launched.pid), Some(7));
        assert_eq!(said.ended.map(script_end), Some(ScriptEnd::Exited(3)));
    }
}
