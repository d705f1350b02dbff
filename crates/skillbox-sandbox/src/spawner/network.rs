//! The network namespace of the next sandbox.
//!
//! Making one takes about as long as everything else of a launch together, so it is made ahead: the spawner itself,
//! which needs no network, moves into a fresh empty one whenever it is idle, and the next child is born there. Each
//! is used by one run only, and it belongs to a user namespace that the script is not in.
#![expect(unsafe_code, reason = "unshare(2) changes the whole process")]

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, open};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::kernel::loopback;

/// Where the spawner is in the network.
pub(super) struct Network {
    host: OwnedFd,
    here: Here,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Here {
    /// In the host's.
    Host,
    /// In one that nobody has used.
    Fresh,
    /// In one that a sandbox was born in.
    Used,
}

/// What a run gets of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The host's own.
    Host,
    /// An empty one, with loopback down.
    Empty,
    /// An empty one, with loopback up.
    Loopback,
}

impl Network {
    pub fn new() -> io::Result<Self> {
        let host = open("/proc/self/ns/net", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { host, here: Here::Host })
    }

    /// Goes where the next child is to be born.
    pub fn go(&mut self, wanted: Wanted) -> io::Result<()> {
        match wanted {
            Wanted::Host if self.here == Here::Host => {}
            Wanted::Host => {
                move_into_link_name_space(self.host.as_fd(), Some(LinkNameSpaceType::Network))?;
                self.here = Here::Host;
            }
            Wanted::Empty | Wanted::Loopback => {
                self.prepare()?;
                if wanted == Wanted::Loopback {
                    // From here on it is not what another run would expect, should this launch fail.
                    self.here = Here::Used;
                    loopback::bring_up()?;
                }
                self.here = Here::Used;
            }
        }
        Ok(())
    }

    /// Whether the next sandbox would have to wait for its network namespace.
    pub fn needs_preparation(&self) -> bool {
        self.here == Here::Used
    }

    /// Makes a fresh one, if there is none.
    pub fn prepare(&mut self) -> io::Result<()> {
        if self.here != Here::Fresh {
            // SAFETY: no descriptor table is unshared.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET)? };
            self.here = Here::Fresh;
        }
        Ok(())
    }
}
