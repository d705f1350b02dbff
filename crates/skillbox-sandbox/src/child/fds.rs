//! The descriptors of the child.
#![expect(unsafe_code, reason = "descriptors are moved and closed by number")]

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};

use crate::close_descriptors::close_all_except;
use crate::kernel::mount::MountCloner;
use crate::plan::{RunOp, Step, run_steps};

/// The descriptors that every child inherits from the spawner.
pub(crate) struct ChildFds {
    /// Attaches the mounts of the run; none without a mount namespace.
    pub mount_cloner: Option<MountCloner>,
    /// The outer `/proc`, through which the id maps are written; none without a mount namespace.
    pub proc: Option<OwnedFd>,
    /// A pidfd of the spawner: it shows whether the spawner died before the child requested its parent-death signal.
    /// None where the kernel lacks pidfd_open(2).
    pub spawner: Option<OwnedFd>,
    /// The `tasks` files of the control groups (cgroup v1), through which pid 2 joins them.
    pub tasks_fds: Vec<OwnedFd>,
}

/// The descriptors of one run.
pub(crate) struct RunFds {
    /// The answer socket. The server closes its end when it no longer waits for answers.
    pub answers: OwnedFd,
    /// Standard input, output and error of the command.
    pub stdio: [OwnedFd; 3],
    /// One detached mount for each step that mounts, in order.
    pub mounts: VecDeque<OwnedFd>,
}

impl RunFds {
    /// Assigns the descriptors of a run message to their purposes. The answer socket replaces the run socket under the
    /// same number, because pid 1 shares the descriptor table and sends its answers there.
    pub fn from_message(steps: &[Step], descriptors: Vec<OwnedFd>, mut run_socket: OwnedFd) -> io::Result<Self> {
        let mut descriptors = descriptors.into_iter();
        let mut next = || {
            descriptors
                .next()
                .ok_or_else(|| io::Error::from_raw_os_error(libc::EBADMSG))
        };
        rustix::io::dup3(next()?, &mut run_socket, rustix::io::DupFlags::CLOEXEC)?;
        let stdio = [next()?, next()?, next()?];
        let mount_count = run_steps(steps).filter(|(_, op)| needs_mount(op)).count();
        let mounts = (0..mount_count).map(|_| next()).collect::<io::Result<_>>()?;
        Ok(Self {
            answers: run_socket,
            stdio,
            mounts,
        })
    }
}

fn needs_mount(op: &RunOp) -> bool {
    matches!(op, RunOp::MountWorkspace { .. } | RunOp::BindDescriptor { .. })
}

/// The descriptors that a run needs only until `RunOp::CloseDescriptors`.
pub(super) struct SetupFds {
    pub mount_cloner: Option<MountCloner>,
    pub proc: Option<OwnedFd>,
    pub spawner: Option<OwnedFd>,
    pub stdio: [OwnedFd; 3],
    pub mounts: VecDeque<OwnedFd>,
    /// The layers of a writable skill, once `RunOp::OpenSkillLayers` has opened them.
    pub skill_layers: Option<OwnedFd>,
}

impl SetupFds {
    /// Moves standard input, output and error to the numbers 0 to 2, and closes every other descriptor that is not in
    /// `kept`. This includes inherited copies of the sockets of other runs: while a copy is open, the peer of such a
    /// socket does not notice that it was closed.
    pub fn set_stdio_and_close_others(self, mut kept: Vec<RawFd>) -> io::Result<()> {
        for (target, descriptor) in (0..).zip(self.stdio) {
            // Not owned any longer, because `close_all_except` below closes it.
            let raw = descriptor.into_raw_fd();
            // SAFETY: the descriptors 0 to 2 are `/dev/null`, inherited from the spawner, and nothing uses them.
            if unsafe { libc::dup2(raw, target) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        let others = self.mounts.into_iter().chain(self.skill_layers);
        let others = others.chain(self.proc).chain(self.spawner);
        for descriptor in others {
            let _ = descriptor.into_raw_fd();
        }
        kept.sort_unstable();
        // SAFETY: each closed descriptor was released by its owner above, or belongs to state copied from the spawner,
        // which this process neither uses nor drops, or to pid 1 of a parked sandbox, which uses only the answer
        // socket.
        unsafe { close_all_except(&kept) }
    }
}

impl ChildFds {
    /// Closes everything but these descriptors, the run socket and the standard streams, while this child waits for its
    /// run.
    pub(super) fn close_unrelated_fds(&self, run_socket: BorrowedFd<'_>) -> io::Result<()> {
        let mut kept: Vec<RawFd> = self.tasks_fds.iter().map(AsRawFd::as_raw_fd).collect();
        kept.extend(self.proc.iter().chain(&self.spawner).map(AsRawFd::as_raw_fd));
        kept.push(run_socket.as_raw_fd());
        kept.sort_unstable();
        // SAFETY: every other descriptor belongs to state copied from the spawner, which is neither used nor dropped
        // here.
        unsafe { close_all_except(&kept) }
    }
}
