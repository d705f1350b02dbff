//! One sandbox, from its launch to its result.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Signal, pidfd_send_signal};
use skillbox_model::{Enforcement, ErrorCode, ResourceUsage};

use super::answers::{LaunchAnswers, has_answer};
use super::errors::{LaunchError, SpawnerError};
use super::{cpu_sampling, nameless_files};
use crate::cgroup::UsageFiles;
use crate::plan::{LaunchPlan, Op, RunOp, TemplateOp, has_pid_namespace, record_failed_step};
use crate::protocol::{SandboxUsage, StepFailure};

/// A launched command and all processes that it started. Dropping the value kills them.
#[derive(Debug)]
pub struct Sandbox {
    pid: i32,
    pidfd: OwnedFd,
    answers: OwnedFd,
    usage_files: UsageFiles,
    listening_sockets: Vec<OwnedFd>,
    /// Whether a control group measures the usage, so that the measurement of the spawner is not needed.
    has_usage_files: bool,
    has_pid_namespace: bool,
    enforcement: Enforcement,
    exec_error: Option<i32>,
    /// The wait(2) status of a command that ended before the spawner reported the launch.
    command_status: Option<i32>,
    parking_failure: Option<ParkingFailure>,
    /// Why the skill stayed read-only.
    read_only_skill: Option<String>,
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
    /// How the command itself ended.
    pub end: CommandEnd,
    /// The errno if the command could not be executed; `end` then has the exit code that a shell returns.
    pub exec_error: Option<i32>,
    /// The CPU time of all processes of the sandbox.
    pub cpu: Duration,
    /// The usage for the report.
    pub usage: ResourceUsage,
    /// The limits that were reached.
    pub limit_hits: LimitHits,
    /// What was enforced; preferred steps that failed are recorded as such.
    pub enforcement: Enforcement,
    /// Why the skill that the plan makes writable stayed read-only.
    pub read_only_skill: Option<String>,
}

/// How the command itself ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandEnd {
    /// It exited with this code.
    Exited(i32),
    /// This signal ended it.
    Signaled(i32),
    /// The whole sandbox was killed before the command ended.
    Killed,
}

/// The limits that were reached during a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitHits {
    /// The kernel killed a process because of the memory limit.
    pub memory: bool,
    /// The kernel refused to create a process because of the process limit.
    pub pids: bool,
    /// The kernel ended the command because of its CPU time limit per process.
    pub cpu: bool,
}

impl Sandbox {
    /// Receives the answers to a launch until the command was executed, or a parked sandbox has received the run.
    pub(super) fn wait_for_launch(plan: &LaunchPlan, socket: OwnedFd) -> Result<Self, LaunchError> {
        let answers = LaunchAnswers::receive_until_launched(&socket)?;
        if let Some(failure) = answers.failure {
            return Err(step_error(plan, failure));
        }
        let mut enforcement = plan.enforcement.clone();
        let mut read_only_skill = None;
        for failure in &answers.failed_preferred_steps {
            record_failed_preferred_step(plan, &mut enforcement, failure);
            record_read_only_skill(plan, &mut read_only_skill, failure);
        }
        let launched = answers.launched.ok_or(SpawnerError::Exited)?;
        let mut descriptors = launched.descriptors.into_iter();
        let pidfd = descriptors.next().ok_or(SpawnerError::Exited)?;
        Ok(Self {
            pid: launched.pid,
            pidfd,
            answers: socket,
            usage_files: UsageFiles::from_fds(launched.usage_mask, descriptors.by_ref()),
            listening_sockets: descriptors.collect(),
            has_usage_files: launched.usage_mask != 0,
            has_pid_namespace: has_pid_namespace(&plan.steps),
            enforcement,
            exec_error: answers.exec_error,
            command_status: answers.command_status,
            parking_failure: answers.parking_failure.map(ParkingFailure),
            read_only_skill,
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

    /// The sockets that listen in the network namespace of the run, if the job has listening ports: one for each port of
    /// a host, the proxy, names over UDP, names over TCP. They can be taken once.
    pub fn take_listening_sockets(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.listening_sockets)
    }

    /// Kills every process of the sandbox. It is no error if the sandbox is dead already.
    pub fn kill(&self) -> io::Result<()> {
        if !self.has_pid_namespace {
            // The reaper has to kill the other processes before it exits. It does so when this side of the socket shuts
            // down.
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

    /// The CPU time that all processes of the sandbox have used so far, as measured by the control group. Without a
    /// control group it is the sum over the running processes, which misses ended processes that no process has waited
    /// for.
    pub fn cpu_used(&self) -> Option<Duration> {
        self.usage_files
            .cpu_time()
            .or_else(|| cpu_sampling::cpu_time_of_tree(self.pid))
    }

    /// The bytes on one device that belong to files without a name which the processes of the sandbox hold.
    pub fn nameless_bytes(&self, device: u64) -> u64 {
        nameless_files::nameless_bytes_of_tree(self.pid, device)
    }

    /// Waits until every process is dead, and returns the result. `plan` must be the plan of the launch: it describes a
    /// failed step, which a parked sandbox reports only now.
    ///
    /// Dropping the sandbox afterwards wakes the spawner for its cleanup, so reply to the caller before you drop it.
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
        // Without a control group, only the spawner knows the usage, and reports it after it has reaped the sandbox.
        while !self.has_usage_files && answers.usage.is_none() && answers.failure.is_none() {
            answers.receive(&self.answers)?;
        }
        if let Some(failure) = answers.failure {
            return Err(step_error(plan, failure));
        }
        for failure in &answers.failed_preferred_steps {
            record_failed_preferred_step(plan, &mut self.enforcement, failure);
            record_read_only_skill(plan, &mut self.read_only_skill, failure);
        }
        self.exec_error = answers.exec_error;
        let end = answers.command_status.map_or(CommandEnd::Killed, command_end);
        Ok(self.result(end, answers.usage.unwrap_or_default()))
    }

    fn result(&self, end: CommandEnd, reported: SandboxUsage) -> SandboxResult {
        let end = match (end, self.exec_error) {
            (CommandEnd::Exited(_), Some(libc::ENOENT | libc::ENOTDIR)) => CommandEnd::Exited(127),
            (CommandEnd::Exited(_), Some(_)) => CommandEnd::Exited(126),
            (end, _) => end,
        };
        let counted = self.usage_files.read();
        let cpu = counted.cpu_time.unwrap_or(reported.cpu);
        SandboxResult {
            end,
            exec_error: self.exec_error,
            cpu,
            usage: ResourceUsage {
                cpu_ms: u64::try_from(cpu.as_millis()).unwrap_or(u64::MAX),
                peak_memory_bytes: counted.peak_memory.or(reported.peak_memory),
            },
            limit_hits: LimitHits {
                memory: counted.memory_limit_hit,
                pids: counted.pids_limit_hit,
                cpu: end == CommandEnd::Signaled(libc::SIGXCPU),
            },
            enforcement: self.enforcement.clone(),
            read_only_skill: self.read_only_skill.clone(),
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

/// Waits without a deadline: the caller enforces the deadline of the run, and kills the sandbox.
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

fn command_end(status: i32) -> CommandEnd {
    if libc::WIFSIGNALED(status) {
        CommandEnd::Signaled(libc::WTERMSIG(status))
    } else {
        CommandEnd::Exited(libc::WEXITSTATUS(status))
    }
}

fn record_failed_preferred_step(plan: &LaunchPlan, enforcement: &mut Enforcement, failure: &StepFailure) {
    if let Some(step) = plan.steps.iter().find(|step| step.number == failure.step) {
        let cause = io::Error::from_raw_os_error(failure.errno);
        record_failed_step(enforcement, step, &format!("cannot {}: {cause}", failure.what));
    }
}

/// Keeps the first reason: later steps fail because an earlier one did.
fn record_read_only_skill(plan: &LaunchPlan, reason: &mut Option<String>, failure: &StepFailure) {
    let is_about_skill = plan.steps.iter().any(|step| {
        step.number == failure.step
            && matches!(
                step.op,
                Op::Run(RunOp::OpenSkillLayers { .. } | RunOp::MakeSkillWritable { .. })
            )
    });
    if is_about_skill && reason.is_none() {
        let cause = io::Error::from_raw_os_error(failure.errno);
        *reason = Some(format!("cannot {}: {cause}", failure.what));
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
        Op::Template(
            TemplateOp::Directory { .. }
            | TemplateOp::BindHost { .. }
            | TemplateOp::Link { .. }
            | TemplateOp::File { .. },
        ) => ErrorCode::ProfileInvalid,
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
        assert_eq!(command_end(3 << 8), CommandEnd::Exited(3));
        assert_eq!(command_end(libc::SIGKILL), CommandEnd::Signaled(libc::SIGKILL));
    }
}
