//! The last step: the command starts as pid 2, and pid 1 is its reaper.

use std::io;
use std::os::fd::AsFd;

use super::{Child, exit, reaper};
use crate::kernel::spawn::{Program, candidates, exec, spawn};
use crate::profile::Need;
use crate::spawner::protocol::{Answer, StepFailure};

/// The mode that files of the script are made with.
const UMASK: u32 = 0o022;

impl Child<'_> {
    /// Starts the command and reaps until it ends; returns only if it could not even be tried.
    pub(super) fn start_and_reap(&mut self) -> io::Result<()> {
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(UMASK));
        reaper::block_child_signals()?;
        let command = &self.orders.command;
        let paths = candidates(&command.argv[0], &command.env);
        let doors: Vec<_> = match self.join {
            Some(_) => self.belongings.doors.iter().map(AsFd::as_fd).collect(),
            None => Vec::new(),
        };
        let program = Program {
            paths: &paths,
            argv: &command.argv,
            env: &command.env,
            join: &doors,
        };
        let spawned = spawn(&program, self.join == Some(Need::Required))?;
        drop(doors);
        self.belongings.doors.clear();
        reaper::close_stdio();
        if let Some(errno) = spawned.join_error {
            let step = self
                .orders
                .steps
                .iter()
                .find(|step| matches!(step.op, crate::plan::Op::EnterCgroup));
            let failure = StepFailure {
                step: step.map_or(0, |step| step.number),
                what: "join the control group".to_owned(),
                errno,
            };
            if self.join == Some(Need::Required) {
                self.tell(&Answer::Failed(failure));
                exit(super::SETUP_FAILED);
            }
            self.tell(&Answer::Degraded(failure));
        }
        self.tell(&match spawned.exec_error {
            Some(errno) => Answer::NotExecuted { errno },
            None => Answer::Started,
        });
        let status = reaper::reap_until(spawned.pid, self.belongings.answers.as_ref());
        if let Some(hunt) = &self.hunts {
            hunt.kill_descendants();
        }
        if let Some(status) = status {
            self.tell(&Answer::Ended { status });
        }
        exit(0)
    }

    /// Starts the command in this very process; returns only if it could not even be tried.
    pub(super) fn become_the_command(&mut self) -> io::Result<()> {
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(UMASK));
        let command = &self.orders.command;
        let paths = candidates(&command.argv[0], &command.env);
        let errno = exec(&paths, &command.argv, &command.env);
        self.tell(&Answer::NotExecuted { errno });
        exit(super::NOT_EXECUTED)
    }
}
