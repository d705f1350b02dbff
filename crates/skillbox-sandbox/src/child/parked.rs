//! A sandbox that was prepared ahead and waits for its run: pid 1, which will reap, and pid 2, which will be the command.
//!
//! Nothing is left for the run itself but what it brings: no process has to be made, and no control group joined. The two
//! share their descriptors until pid 2 starts the command: what pid 2 is sent, pid 1 has as well.
#![expect(
    unsafe_code,
    reason = "a clone is safe only in a process of one thread, which this one is"
)]

use std::io;
use std::os::fd::OwnedFd;

use super::understudy::wait_for_the_run;
use super::{Belongings, Child, SETUP_FAILED, exit, reaper};
use crate::kernel::clone::{Cloned, clone_process};
use crate::profile::Need;
use crate::spawner::protocol::{Answer, Orders};

/// Prepares, parks, and lives as the child of the one run that is sent through `bell`. Does not return.
pub(crate) fn park(orders: &Orders<'_>, belongings: Belongings, bell: OwnedFd) -> ! {
    let mut child = Child::new(orders, belongings);
    // Whatever fails here fails again in the launch that finds this slot dead, and is told there.
    if child.prepare().is_err() || child.let_go_of_others(&bell).is_err() {
        exit(SETUP_FAILED)
    }
    let Ok((confined, tell_confined)) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC) else {
        exit(SETUP_FAILED)
    };
    // SAFETY: this process is a clone of the spawner's one thread and has started none.
    match unsafe { clone_process(libc::CLONE_FILES as u64, None) } {
        Ok(Cloned::Child) => wait_for_the_run(child, bell, &confined),
        Ok(Cloned::Parent { pid, pidfd }) => {
            drop(pidfd);
            if child.confine_as_reaper().is_err() || rustix::io::write(&tell_confined, b"!").is_err() {
                exit(SETUP_FAILED)
            }
            let status = reaper::reap_until(pid, None);
            // Pid 2 has put the answers of the run where the bell was.
            child.belongings.answers = Some(bell);
            if let Some(status) = status {
                child.tell(&Answer::Ended { status });
            }
            exit(0)
        }
        Err(_) => exit(SETUP_FAILED),
    }
}

impl Child<'_> {
    /// Does as pid 1 what the plan has for every process of the sandbox, in the plan's order. Descriptors are left to
    /// pid 2, which closes them for both.
    fn confine_as_reaper(&mut self) -> io::Result<()> {
        reaper::block_child_signals()?;
        let orders = self.orders;
        for (index, step) in orders.steps.iter().enumerate().filter(|(_, step)| step.op.confines()) {
            match self.step(index, step) {
                // Pid 2 fails at the same, and tells it.
                Err(_) if step.need == Need::Preferred => {}
                Err((_, error)) => return Err(error),
                Ok(()) => {}
            }
        }
        Ok(())
    }
}
