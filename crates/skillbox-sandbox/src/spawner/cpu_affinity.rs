//! Starts a forked spawner on a different processor than its parent.

use std::io;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// The processors that this process may use.
#[derive(Clone, Copy)]
pub(crate) struct CpuAffinity(CpuSet);

impl CpuAffinity {
    /// The processors of this process; none if there is only one.
    pub fn of_this_process() -> io::Result<Option<Self>> {
        let all = sched_getaffinity(None)?;
        Ok((all.count() > 1).then_some(Self(all)))
    }

    /// Moves a child that was just forked to a different processor than the current one.
    ///
    /// The parent and the spawner both have work after the fork. A kernel that fills one processor before it wakes the
    /// next makes one of them wait for the other, which delays a program with a single run.
    pub fn move_child_to_other_cpu(self, child: Pid) -> io::Result<()> {
        let mut others = self.0;
        others.unset(sched_getcpu());
        Ok(sched_setaffinity(Some(child), &others)?)
    }

    /// Lets this process use all of these processors again. The children of the spawner call it.
    pub fn restore(self) -> io::Result<()> {
        Ok(sched_setaffinity(None, &self.0)?)
    }
}
