//! One running sandbox, seen from the server.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Signal, pidfd_send_signal};
use skillbox_model::{Enforcement, ErrorCode, Usage};

use super::answers::{LaunchAnswers, has_answer};
use super::cpu_sampling;
use super::errors::{LaunchError, SpawnerError};
use crate::cgroup::UsageFiles;
use crate::plan::{LaunchPlan, Op, RunOp, has_pid_namespace, record_failed_step};
use crate::protocol::{SandboxUsage, StepFailure};

/// A launched command and everything it started. Dropping it kills them all.
#[derive(Debug)]
pub struct Sandbox {
    pid: i32,
    pidfd: OwnedFd,
    answers: OwnedFd,
    usage_files: UsageFiles,
    /// Whether a control group counts the usage, so that the count of the spawner is not needed.
    has_usage_files: bool,
    has_pid_namespace: bool,
    enforcement: Enforcement,
    exec_error: Option<i32>,
    /// The status of a command that ended before the spawner had reported its launch.
    command_status: Option<i32>,
    parking_failure: Option<ParkingFailure>,
    is_finished: bool,
}

/// Why the spawner could not park a sandbox before this launch. The launch itself is not affected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParkingFailure(StepFailure);

impl fmt::Display for ParkingFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StepFailure { step, what, errno } = &self.0;
        let cause = io::Error::from_raw_os_error(*errno);
        match step {
            0 => write!(f, "cannot {what}: {cause}"),
            step => write!(f, "step {step} of the plan: cannot {what}: {cause}"),
        }
    }
}

/// How a run ended, what it used, and what was enforced.
#[derive(Clone, Debug)]
pub struct SandboxResult {
    /// The end of the command itself.
    pub end: ScriptEnd,
    /// The error of a command that could not be executed; `end` then has the exit code that a shell returns.
    pub exec_error: Option<i32>,
    /// CPU time of every process of the sandbox.
    pub cpu: Duration,
    /// The usage for the report.
    pub usage: Usage,
    /// The limits that were hit.
    pub hits: LimitHits,
    /// What was enforced, without the preferred steps that failed.
    pub enforcement: Enforcement,
}

/// The end of the command itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptEnd {
    /// It exited with this code.
    Exited(i32),
    /// This signal ended it.
    Signaled(i32),
    /// The whole sandbox was killed before the command ended.
    Killed,
}

/// Limits that were hit during a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitHits {
    /// The kernel killed a process over the memory limit.
    pub memory: bool,
    /// The kernel refused a process over the limit of processes.
    pub pids: bool,
    /// One process used up its CPU time.
    pub cpu: bool,
}

impl Sandbox {
    /// Waits until the command runs, or a parked sandbox has the run.
    pub(super) fn start(plan: &LaunchPlan, socket: OwnedFd) -> Result<Self, LaunchError> {
        let answers = LaunchAnswers::until_running(&socket)?;
        if let Some(failure) = answers.failed {
            return Err(step_error(plan, failure));
        }
        let mut enforcement = plan.enforcement.clone();
        for failure in &answers.degraded {
            record_degradation(plan, &mut enforcement, failure);
        }
        let launched = answers.launched.ok_or(SpawnerError::Exited)?;
        let mut descriptors = launched.descriptors.into_iter();
        let pidfd = descriptors.next().ok_or(SpawnerError::Exited)?;
        Ok(Self {
            pid: launched.pid,
            pidfd,
            answers: socket,
            usage_files: UsageFiles::from_fds(launched.usage_mask, descriptors),
            has_usage_files: launched.usage_mask != 0,
            has_pid_namespace: has_pid_namespace(&plan.steps),
            enforcement,
            exec_error: answers.exec_error,
            command_status: answers.command_status,
            parking_failure: answers.parking_failed.map(ParkingFailure),
            is_finished: false,
        })
    }

    /// A descriptor that becomes readable when every process of the sandbox is dead.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Why a sandbox could not be parked before this launch.
    pub fn parking_failure(&self) -> Option<&ParkingFailure> {
        self.parking_failure.as_ref()
    }

    /// Kills every process of the sandbox. A dead sandbox is no error.
    pub fn kill(&self) -> io::Result<()> {
        if !self.has_pid_namespace {
            // The reaper must live to kill the others. It does so when our side shuts down.
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

    /// The CPU time so far of every process of the sandbox, counted by its control group. Without a control group it is
    /// summed up over the living processes, which misses those that nobody waited for.
    pub fn cpu_used(&self) -> Option<Duration> {
        self.usage_files
            .cpu_time()
            .or_else(|| cpu_sampling::cpu_of_tree(self.pid))
    }

    /// Waits until every process is dead and returns the result. The plan is the one of the launch: a parked sandbox
    /// reports a failed step only now.
    ///
    /// Dropping the sandbox afterwards wakes the spawner for its cleanup, so drop it after the reply to the caller.
    pub fn finish(&mut self, plan: &LaunchPlan) -> Result<SandboxResult, LaunchError> {
        wait_for_death(&self.pidfd)?;
        self.is_finished = true;
        let mut answers = LaunchAnswers {
            command_status: self.command_status,
            exec_error: self.exec_error,
            ..LaunchAnswers::default()
        };
        // The child sent its answers before it died.
        while answers.usage.is_none() && has_answer(&self.answers)? {
            answers.receive(&self.answers)?;
        }
        // The count of the spawner is worth the wait only without a control group.
        while !self.has_usage_files && answers.usage.is_none() && answers.failed.is_none() {
            answers.receive(&self.answers)?;
        }
        if let Some(failure) = answers.failed {
            return Err(step_error(plan, failure));
        }
        for failure in &answers.degraded {
            record_degradation(plan, &mut self.enforcement, failure);
        }
        self.exec_error = answers.exec_error;
        let end = answers.command_status.map_or(ScriptEnd::Killed, script_end);
        Ok(self.result(end, answers.usage.unwrap_or_default()))
    }

    fn result(&self, end: ScriptEnd, reported: SandboxUsage) -> SandboxResult {
        let end = match (end, self.exec_error) {
            (ScriptEnd::Exited(_), Some(libc::ENOENT | libc::ENOTDIR)) => ScriptEnd::Exited(127),
            (ScriptEnd::Exited(_), Some(_)) => ScriptEnd::Exited(126),
            (end, _) => end,
        };
        let counted = self.usage_files.read();
        let cpu = counted.cpu_time.unwrap_or(reported.cpu);
        SandboxResult {
            end,
            exec_error: self.exec_error,
            cpu,
            usage: Usage {
                cpu_ms: u64::try_from(cpu.as_millis()).unwrap_or(u64::MAX),
                peak_memory_bytes: counted.peak_memory.or(reported.peak_memory),
            },
            hits: LimitHits {
                memory: counted.memory_limit_hit,
                pids: counted.pids_limit_hit,
                cpu: end == ScriptEnd::Signaled(libc::SIGXCPU),
            },
            enforcement: self.enforcement.clone(),
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = self.kill();
        }
    }
}

/// Waits without a deadline: the caller has one, and kills the sandbox at its end.
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

fn script_end(status: i32) -> ScriptEnd {
    if libc::WIFSIGNALED(status) {
        ScriptEnd::Signaled(libc::WTERMSIG(status))
    } else {
        ScriptEnd::Exited(libc::WEXITSTATUS(status))
    }
}

fn record_degradation(plan: &LaunchPlan, enforcement: &mut Enforcement, failure: &StepFailure) {
    if let Some(step) = plan.steps.iter().find(|step| step.number == failure.step) {
        let cause = io::Error::from_raw_os_error(failure.errno);
        record_failed_step(enforcement, step, &format!("cannot {}: {cause}", failure.what));
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
        Op::Run(RunOp::WorkingDirectory { .. }) => ErrorCode::InvalidRequest,
        Op::Run(RunOp::BindDescriptor { .. })
            if matches!(failure.errno, libc::ELOOP | libc::ENOTDIR | libc::EISDIR) =>
        {
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
    use super::*;

    #[test]
    fn a_status_of_wait_is_an_exit_code_or_a_signal() {
        assert_eq!(script_end(3 << 8), ScriptEnd::Exited(3));
        assert_eq!(script_end(libc::SIGKILL), ScriptEnd::Signaled(libc::SIGKILL));
    }
}
