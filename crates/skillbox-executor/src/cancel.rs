//! Cancels a run from another thread or from a signal handler.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::pipe::PipeFlags;

/// A cancellation token that `poll` can wait for together with the other descriptors of a run. Clones share one token.
///
/// It is a pipe, and any byte in it cancels. A signal handler can use it because `write` is async-signal-safe
/// (signal-safety(7)).
#[derive(Clone, Debug)]
pub struct CancelToken(Arc<Pipe>);

#[derive(Debug)]
struct Pipe {
    /// Only polled, never read.
    read_end: OwnedFd,
    write_end: OwnedFd,
}

impl CancelToken {
    /// Creates a token that is not cancelled.
    pub fn new() -> std::io::Result<Self> {
        let (read_end, write_end) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(Self(Arc::new(Pipe { read_end, write_end })))
    }

    /// Cancels. A cancelled token stays cancelled.
    pub fn cancel(&self) {
        // The write fails if the pipe is full. Then the token is already cancelled.
        let _already_cancelled = rustix::io::write(&self.0.write_end, &[1]);
    }

    /// Whether the token is cancelled.
    pub fn is_cancelled(&self) -> bool {
        let mut fds = [PollFd::new(&self.0.read_end, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(rustix::event::poll(&mut fds, Some(&now)), Ok(1))
    }

    /// Returns a new descriptor: any byte written to it cancels the token. Writing never blocks.
    pub fn trigger_fd(&self) -> std::io::Result<OwnedFd> {
        self.0.write_end.try_clone()
    }
}

impl AsFd for CancelToken {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.read_end.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_clone_stays_cancelled() {
        let cancel = CancelToken::new().unwrap();
        let other = cancel.clone();
        assert!(!other.is_cancelled());
        cancel.cancel();
        cancel.cancel();
        assert!(other.is_cancelled() && other.is_cancelled());
    }

    #[test]
    fn writing_to_the_trigger_fd_cancels_even_when_the_pipe_is_full() {
        let cancel = CancelToken::new().unwrap();
        let trigger_fd = cancel.trigger_fd().unwrap();
        for _ in 0..100_000 {
            let _full = rustix::io::write(&trigger_fd, b"!");
        }
        assert!(cancel.is_cancelled());
        cancel.cancel();
    }
}
