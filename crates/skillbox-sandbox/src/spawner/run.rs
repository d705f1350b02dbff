//! A run, from its launch until the server has read its result.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

use super::launch::LaunchedChild;
use crate::cgroup::RunCgroup;
use crate::kernel::wait::{WaitMode, reap};
use crate::plan::has_pid_namespace;
use crate::protocol::{Answer, ChildPlan, SandboxUsage, StepFailure, send_answer};

/// A run, from its launch until the server has read its result.
pub(super) struct Run {
    pid: i32,
    /// None once every process of the sandbox is dead and reaped.
    pidfd: Option<OwnedFd>,
    answers: OwnedFd,
    watch: Watch,
    /// Dropped, and so removed, together with the run: by then the server has closed the usage files.
    _cgroup: Option<RunCgroup>,
    _mount_namespace: Option<OwnedFd>,
}

/// The event that the spawner waits for while a sandbox is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watch {
    /// The server closes its end. The server has the usage files and a pidfd, so it needs no report from the spawner,
    /// and the spawner should not use the processor before the server has replied.
    ServerClose,
    /// The server closes its end, or the sandbox dies. The spawner then reports its usage.
    ServerCloseOrDeath,
    /// The sandbox dies. The server has closed its end already, or the reaper watches the server.
    Death,
}

impl Watch {
    fn new(plan: &ChildPlan<'_>, usage_mask: u8) -> Self {
        match (has_pid_namespace(&plan.steps), usage_mask) {
            (false, _) => Self::Death,
            (true, 0) => Self::ServerCloseOrDeath,
            (true, _) => Self::ServerClose,
        }
    }
}

impl Run {
    /// Reports a launch to the server. If that fails, the sandbox is killed.
    pub fn start(launched: LaunchedChild, plan: &ChildPlan<'_>) -> Self {
        let LaunchedChild {
            child,
            answers,
            was_parked,
        } = launched;
        let (usage_mask, usage_files) = child
            .cgroup
            .as_ref()
            .map(|cgroup| cgroup.usage_files().to_fds())
            .unwrap_or_default();
        let mut descriptors = vec![child.pidfd.as_fd()];
        descriptors.extend(usage_files);
        descriptors.extend(child.sockets.iter().map(AsFd::as_fd));
        let launched = Answer::Launched {
            pid: child.pid,
            usage_mask,
            was_parked,
        };
        let mut failed_preferred_steps = child
            .failed_preferred_steps
            .into_iter()
            .map(Answer::PreferredStepFailed);
        let reported = failed_preferred_steps
            .try_for_each(|answer| send_answer(answers.as_fd(), &answer, &[]))
            .and_then(|()| send_answer(answers.as_fd(), &launched, &descriptors));
        let mut run = Self {
            pid: child.pid,
            pidfd: Some(child.pidfd),
            answers,
            watch: Watch::new(plan, usage_mask),
            _cgroup: child.cgroup,
            _mount_namespace: child.mount_namespace,
        };
        if let Err(error) = reported {
            run.report_failure("send the descriptors of the sandbox", &error);
            run.kill();
            run.watch = Watch::Death;
        }
        run
    }

    /// Whether the sandbox is alive, or the server has not closed its end yet.
    pub fn is_needed(&self) -> bool {
        self.pidfd.is_some() || !self.has_server_closed()
    }

    pub fn kill(&self) {
        if let Some(pid) = Pid::from_raw(self.pid).filter(|_| self.pidfd.is_some()) {
            // A failure means that the process has died already; it is reaped in the same way.
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    /// Ends a run whose server has closed its end. A dead sandbox, the usual case, is reaped at once; another one is
    /// killed now and reaped when it is dead.
    pub fn end(&mut self) {
        let Some(pidfd) = &self.pidfd else { return };
        if is_ready(pidfd, PollFlags::IN) {
            self.reap();
        } else {
            self.kill();
            self.watch = Watch::Death;
        }
    }

    /// Reaps a dead sandbox and reports its usage.
    pub fn reap(&mut self) {
        if self.pidfd.take().is_none() {
            return;
        }
        match reap(Some(self.pid), WaitMode::Block) {
            Ok(exited) => {
                let usage = exited.map(|exited| SandboxUsage {
                    cpu: exited.cpu_time,
                    peak_memory: Some(exited.peak_memory_bytes),
                });
                let answer = Answer::SandboxReaped(usage.unwrap_or_default());
                // If the answer is lost, the server runs into its timeout.
                let _ = send_answer(self.answers.as_fd(), &answer, &[]);
            }
            Err(error) => self.report_failure("reap the sandbox", &error),
        }
    }

    fn report_failure(&self, what: &str, error: &io::Error) {
        let failure = Answer::Failed(StepFailure::outside_steps(what, error));
        // If the answer is lost, the server runs into its timeout.
        let _ = send_answer(self.answers.as_fd(), &failure, &[]);
    }

    /// The descriptor to watch for the death of the sandbox.
    pub fn watched_pidfd(&self) -> Option<&OwnedFd> {
        self.pidfd.as_ref().filter(|_| self.watch != Watch::ServerClose)
    }

    /// The descriptor to watch for the end of the server.
    pub fn watched_answers(&self) -> Option<&OwnedFd> {
        (self.pidfd.is_none() || self.watch != Watch::Death).then_some(&self.answers)
    }

    fn has_server_closed(&self) -> bool {
        is_ready(&self.answers, PollFlags::empty())
    }
}

fn is_ready(descriptor: &OwnedFd, events: PollFlags) -> bool {
    let no_wait = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(descriptor, events)], Some(&no_wait)).is_ok_and(|count| count > 0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustix::process::{PidfdFlags, pidfd_open};

    use super::*;
    use crate::kernel::socket;
    use crate::spawner::events::{open_termination_signals, wait_for_events};

    /// A process that outlives every test, and the server's end of its socket.
    fn lasting_run(watch: Watch) -> (Run, OwnedFd) {
        #[expect(clippy::disallowed_methods, reason = "the test needs a running process")]
        #[expect(clippy::zombie_processes, reason = "it is reaped as a sandbox is")]
        let child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let pidfd = pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).unwrap();
        let (server, answers) = socket::pair().unwrap();
        let run = Run {
            pid,
            pidfd: Some(pidfd),
            answers,
            watch,
            _cgroup: None,
            _mount_namespace: None,
        };
        (run, server)
    }

    #[test]
    fn a_run_that_the_server_closed_is_killed_and_reaped_once_it_is_dead() {
        let (socket, _server) = socket::pair().unwrap();
        let signals = open_termination_signals().unwrap();
        let timeout = Some(Duration::from_secs(20));
        for watch in [Watch::ServerClose, Watch::ServerCloseOrDeath] {
            let (run, server) = lasting_run(watch);
            let mut runs = [run];
            let nothing = wait_for_events(&socket, &signals, &runs, Some(Duration::ZERO)).unwrap();
            assert!(nothing.is_timeout && nothing.dead_runs.is_empty() && nothing.closed_runs.is_empty());
            drop(server);
            let event = wait_for_events(&socket, &signals, &runs, timeout).unwrap();
            assert_eq!((event.closed_runs, event.dead_runs), (vec![0], vec![]), "{watch:?}");
            runs[0].end();
            // `end` did not wait: a kill does not end every process at once.
            assert_eq!((runs[0].pidfd.is_some(), runs[0].watch), (true, Watch::Death));
            let event = wait_for_events(&socket, &signals, &runs, timeout).unwrap();
            assert_eq!((event.closed_runs, event.dead_runs), (vec![], vec![0]));
            runs[0].reap();
            assert!(runs[0].pidfd.is_none() && runs[0].has_server_closed());
        }
    }

    #[test]
    fn a_reaper_that_watches_the_server_itself_is_not_ended_by_the_spawner() {
        let (socket, _server) = socket::pair().unwrap();
        let (run, server) = lasting_run(Watch::Death);
        let mut runs = [run];
        drop(server);
        let signals = open_termination_signals().unwrap();
        let event = wait_for_events(&socket, &signals, &runs, Some(Duration::ZERO)).unwrap();
        assert!(event.is_timeout && event.closed_runs.is_empty());
        runs[0].kill();
        runs[0].reap();
    }
}
