//! A forked spawner beside its parent instead of behind it.

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// The processors that this process may use, where there are several.
#[derive(Clone, Copy)]
pub(super) struct Processors(CpuSet);

impl Processors {
    /// Those of this process.
    pub fn own() -> Option<Self> {
        let all = sched_getaffinity(None).ok()?;
        (all.count() > 1).then_some(Self(all))
    }

    /// Sends a child that was just forked to another processor than ours.
    ///
    /// Parent and spawner both have work at once. A kernel that would sooner fill one processor before it wakes the
    /// next lets one of them wait for the other, which a program that makes one run is in no mood for.
    pub fn send_elsewhere(self, child: Pid) {
        let mut others = self.0;
        others.unset(sched_getcpu());
        // Without it the child begins where the kernel put it, and no worse.
        let _ = sched_setaffinity(Some(child), &others);
    }

    /// Lets this process use them all: what the spawner starts is not bound by where the spawner is.
    pub fn use_all(self) {
        let _ = sched_setaffinity(None, &self.0);
    }
}
