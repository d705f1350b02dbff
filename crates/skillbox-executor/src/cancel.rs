//! Ending a run from outside.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::pipe::PipeFlags;

/// A switch that can be waited for together with everything else a run waits for. Clones are the same switch.
///
/// It is a pipe, and thrown by any byte in it: the one thing that a handler of signals too may write.
#[derive(Clone, Debug)]
pub struct Cancel(Arc<Ends>);

#[derive(Debug)]
struct Ends {
    /// Nobody ever reads from it.
    watched: OwnedFd,
    thrown: OwnedFd,
}

impl Cancel {
    /// A switch that nobody has thrown yet.
    pub fn new() -> std::io::Result<Self> {
        let (watched, thrown) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(Self(Arc::new(Ends { watched, thrown })))
    }

    /// Throws the switch. It stays thrown.
    pub fn cancel(&self) {
        // A full pipe was thrown often enough.
        let _already_thrown = rustix::io::write(&self.0.thrown, &[1]);
    }

    /// Whether the switch was thrown.
    pub fn is_cancelled(&self) -> bool {
        let mut fds = [PollFd::new(&self.0.watched, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(rustix::event::poll(&mut fds, Some(&now)), Ok(1))
    }

    /// A descriptor of its own that throws the switch with any byte written to it, and never blocks.
    pub fn trigger(&self) -> std::io::Result<OwnedFd> {
        self.0.thrown.try_clone()
    }
}

impl AsFd for Cancel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.watched.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thrown_switch_stays_thrown_for_every_clone() {
        let cancel = Cancel::new().unwrap();
        let other = cancel.clone();
        assert!(!other.is_cancelled());
        cancel.cancel();
        cancel.cancel();
        assert!(other.is_cancelled() && other.is_cancelled());
    }

    #[test]
    fn a_byte_through_the_trigger_throws_it_and_too_many_do_no_harm() {
        let cancel = Cancel::new().unwrap();
        let trigger = cancel.trigger().unwrap();
        for _ in 0..100_000 {
            let _full = rustix::io::write(&trigger, b"!");
        }
        assert!(cancel.is_cancelled());
        cancel.cancel();
    }
}
