//! The network namespace of the next sandbox.
//!
//! Creating one takes about as long as everything else of a launch together, so it is created ahead: whenever the spawner
//! is idle it enters a fresh, empty network namespace, since it needs no network itself, and the next child inherits it.
//! Each is used by one run only. It belongs to a user namespace that the script is not in.
#![expect(unsafe_code, reason = "unshare(2) changes the whole process")]

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, open};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::kernel::loopback;

/// The network namespace that the spawner is in.
pub(super) struct Network {
    host: OwnedFd,
    current: CurrentNamespace,
    /// Whether a run has used the fresh namespace since the last attempt to create one.
    needs_preparation: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CurrentNamespace {
    /// The namespace of the host.
    Host,
    /// One that no sandbox has used.
    Fresh,
    /// One that a sandbox uses or has used.
    Used,
}

/// The network of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NetworkKind {
    /// The network of the host.
    Host,
    /// An empty namespace, with loopback down.
    Empty,
    /// An empty namespace, with loopback up.
    Loopback,
}

impl Network {
    pub fn new() -> io::Result<Self> {
        let host = open("/proc/self/ns/net", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self {
            host,
            current: CurrentNamespace::Host,
            needs_preparation: false,
        })
    }

    /// Enters the namespace that the next child inherits.
    pub fn enter(&mut self, kind: NetworkKind) -> io::Result<()> {
        match kind {
            NetworkKind::Host if self.current == CurrentNamespace::Host => {}
            NetworkKind::Host => {
                move_into_link_name_space(self.host.as_fd(), Some(LinkNameSpaceType::Network))?;
                self.current = CurrentNamespace::Host;
                self.needs_preparation = false;
            }
            NetworkKind::Empty | NetworkKind::Loopback => {
                self.enter_fresh()?;
                // Used from here on, even when the launch fails: another run must not find loopback up.
                self.current = CurrentNamespace::Used;
                self.needs_preparation = true;
                if kind == NetworkKind::Loopback {
                    loopback::bring_up()?;
                }
            }
        }
        Ok(())
    }

    /// Whether the next sandbox would have to wait for its network namespace.
    pub fn needs_preparation(&self) -> bool {
        self.needs_preparation
    }

    /// Creates a fresh namespace ahead. A failure is not repeated until a launch needs the namespace, and that launch
    /// reports it.
    pub fn prepare(&mut self) -> io::Result<()> {
        self.needs_preparation = false;
        self.enter_fresh()
    }

    fn enter_fresh(&mut self) -> io::Result<()> {
        if self.current != CurrentNamespace::Fresh {
            // SAFETY: no descriptor table is unshared.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET)? };
            self.current = CurrentNamespace::Fresh;
        }
        Ok(())
    }
}
