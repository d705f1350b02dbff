//! The descriptors of the child.
#![expect(unsafe_code, reason = "descriptors are moved and closed by number")]

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};

use crate::descriptors::close_all_except;
use crate::kernel::mount::TreeCloner;
use crate::plan::{RunOp, Step, run_steps};

/// The descriptors that the child inherits from the spawner, whatever it runs.
pub(crate) struct ChildFds {
    /// How the mounts of the run are attached; none without a mount namespace.
    pub tree_cloner: Option<TreeCloner>,
    /// The outer `/proc`, through which the id maps are written; none without a mount namespace.
    pub proc: Option<OwnedFd>,
    /// A pidfd of the spawner, to find out whether it died before the child asked to die with it; none where the kernel
    /// has no pidfd_open(2).
    pub spawner: Option<OwnedFd>,
    /// The `tasks` files of the control groups (cgroup v1).
    pub tasks_fds: Vec<OwnedFd>,
}

/// The descriptors of one run.
pub(crate) struct RunFds {
    /// The socket for answers. Its end reports that nobody waits for them any more.
    pub answers: OwnedFd,
    /// Standard input, output and error of the command.
    pub stdio: [OwnedFd; 3],
    /// One detached mount for each step that mounts, in order.
    pub mounts: VecDeque<OwnedFd>,
}

impl RunFds {
    /// Assigns the descriptors of a run message. The answer socket replaces the run socket under the same number, where
    /// pid 1 expects it.
    pub fn from_message(steps: &[Step], descriptors: Vec<OwnedFd>, mut run_socket: OwnedFd) -> io::Result<Self> {
        let mut descriptors = descriptors.into_iter();
        let mut next = || {
            descriptors
                .next()
                .ok_or_else(|| io::Error::from_raw_os_error(libc::EBADMSG))
        };
        rustix::io::dup3(next()?, &mut run_socket, rustix::io::DupFlags::CLOEXEC)?;
        let stdio = [next()?, next()?, next()?];
        let mount_count = run_steps(steps).filter(|(_, op)| mounts_descriptor(op)).count();
        let mounts = (0..mount_count).map(|_| next()).collect::<io::Result<_>>()?;
        Ok(Self {
            answers: run_socket,
            stdio,
            mounts,
        })
    }
}

fn mounts_descriptor(op: &RunOp) -> bool {
    matches!(op, RunOp::MountWorkspace { .. } | RunOp::BindDescriptor { .. })
}

/// The descriptors that the child needs until it closes everything but the standard streams.
pub(super) struct SetupFds {
    pub tree_cloner: Option<TreeCloner>,
    pub proc: Option<OwnedFd>,
    pub spawner: Option<OwnedFd>,
    pub stdio: [OwnedFd; 3],
    pub mounts: VecDeque<OwnedFd>,
}

impl SetupFds {
    /// Puts standard input, output and error in place and closes every other descriptor but these. Copies of the sockets
    /// of other runs must be closed here, because their ends are not noticed while a copy is open.
    pub fn close_and_keep(self, mut kept: Vec<RawFd>) -> io::Result<()> {
        for (target, descriptor) in (0..).zip(self.stdio) {
            // Raw from here on, because close_range(2) below closes them.
            let raw = descriptor.into_raw_fd();
            // SAFETY: the numbers 0 to 2 are the spawner's /dev/null, which nothing uses.
            if unsafe { libc::dup2(raw, target) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        let others = self.mounts.into_iter().chain(self.proc).chain(self.spawner);
        for descriptor in others {
            let _ = descriptor.into_raw_fd();
        }
        kept.sort_unstable();
        // SAFETY: the owners of these numbers gave them up above, or are part of the spawner's copied state, which is
        // neither used nor dropped here, or are pid 1 of a parked sandbox, which uses only the answers.
        unsafe { close_all_except(&kept) }
    }
}

impl ChildFds {
    /// Closes the descriptors of other runs while this child waits for its own.
    pub(super) fn close_unrelated_fds(&self, run_socket: BorrowedFd<'_>) -> io::Result<()> {
        let mut kept: Vec<RawFd> = self.tasks_fds.iter().map(AsRawFd::as_raw_fd).collect();
        kept.extend(self.proc.iter().chain(&self.spawner).map(AsRawFd::as_raw_fd));
        kept.push(run_socket.as_raw_fd());
        kept.sort_unstable();
        // SAFETY: everything else is part of the spawner's copied state, which is neither used nor dropped here.
        unsafe { close_all_except(&kept) }
    }
}
