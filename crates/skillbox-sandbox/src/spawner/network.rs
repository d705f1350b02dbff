//! The network namespace of the spawner, which the next child inherits.
//!
//! Creating a network namespace takes about as long as the rest of a launch, so the spawner does it in advance: it
//! needs no network itself, and enters a fresh, empty namespace when it is idle. Only one run uses each namespace. The
//! script has no privileges over it, because it belongs to another user namespace than the script.
#![expect(unsafe_code, reason = "unshare(2) changes the whole process")]

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, open};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::kernel::loopback;

/// The network namespace that the spawner is in.
pub(super) struct NetworkNamespace {
    host: OwnedFd,
    current: CurrentNamespace,
    /// Whether a run has used the current namespace, and no attempt was made yet to create the next one.
    needs_preparation: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CurrentNamespace {
    /// The namespace of the host.
    Host,
    /// A namespace that no sandbox has used.
    Fresh,
    /// A namespace that a sandbox uses or has used.
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

impl NetworkNamespace {
    pub fn open() -> io::Result<Self> {
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
                // Marked as used even if the launch fails later: another run must not inherit it with loopback up.
                self.current = CurrentNamespace::Used;
                self.needs_preparation = true;
                if kind == NetworkKind::Loopback {
                    loopback::bring_up()?;
                }
            }
        }
        Ok(())
    }

    /// Whether [`Self::prepare`] has work to do.
    pub fn needs_preparation(&self) -> bool {
        self.needs_preparation
    }

    /// Creates a fresh namespace in advance. After a failure, the launch that needs the namespace tries again and
    /// reports the error.
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
