//! Notices changes of the mount table: proc_pid_mountinfo(5) becomes readable with an exceptional condition.

use std::fs::File;
use std::io;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The mount table of this process, with a number that grows whenever it changes.
#[derive(Debug)]
pub(super) struct MountTable {
    mountinfo: File,
    generation: u64,
}

impl MountTable {
    pub(super) fn open() -> io::Result<Self> {
        Ok(Self {
            mountinfo: File::open("/proc/self/mountinfo")?,
            generation: 0,
        })
    }

    /// The number of the current table. A failure counts as a change.
    pub(super) fn generation(&mut self) -> u64 {
        let mut polled = [PollFd::new(&self.mountinfo, PollFlags::PRI)];
        let is_unchanged = match poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
            Ok(_) => !polled[0].revents().intersects(PollFlags::PRI | PollFlags::ERR),
            Err(_) => false,
        };
        if !is_unchanged {
            self.generation += 1;
        }
        self.generation
    }
}
