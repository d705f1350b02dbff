//! Ending a run from outside.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::EventfdFlags;

/// A switch that can be waited for together with everything else a run waits for. Clones are the same switch.
#[derive(Clone, Debug)]
pub struct Cancel(Arc<OwnedFd>);

impl Cancel {
    /// A switch that nobody has thrown yet.
    pub fn new() -> std::io::Result<Self> {
        let fd = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self(Arc::new(fd)))
    }

    /// Throws the switch. It stays thrown.
    pub fn cancel(&self) {
        // The counter cannot be full: nobody adds more than one at a time, and readers never take from it.
        let _already_thrown = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }

    /// Whether the switch was thrown.
    pub fn is_cancelled(&self) -> bool {
        let mut fds = [rustix::event::PollFd::new(&*self.0, rustix::event::PollFlags::IN)];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(rustix::event::poll(&mut fds, Some(&now)), Ok(1))
    }
}

impl AsFd for Cancel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
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
}
