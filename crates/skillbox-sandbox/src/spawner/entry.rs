//! The two entry points of the spawner: after an exec and after a fork.
#![expect(
    unsafe_code,
    reason = "the descriptor that an executed spawner inherits, and the end of a forked one"
)]

use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};

use super::cpu_affinity::CpuAffinity;
use super::main_loop::run_spawner;

/// The `argv[0]` of an executed spawner, which has no other arguments.
pub(crate) const SPAWNER_ARG0: &str = "skillbox-spawner";

/// Becomes the spawner if this process was started as one, and then does not return. Call it first in `main`, before
/// any thread exists and before anything is read.
#[expect(clippy::exit, reason = "a spawner ends here and not in the caller's main")]
pub fn run_spawner_if_requested() {
    if std::env::args_os().next().is_none_or(|word| word != SPAWNER_ARG0) {
        return;
    }
    // SAFETY: the descriptor is only inspected, and it stays open meanwhile.
    let stdin = unsafe { BorrowedFd::borrow_raw(0) };
    if !rustix::net::sockopt::socket_type(stdin).is_ok_and(|kind| kind == rustix::net::SocketType::SEQPACKET) {
        return;
    }
    // SAFETY: an executed spawner inherits its socket as descriptor 0, and nothing else in this new process owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(0) };
    std::process::exit(run_spawner(socket, None).map_or(1, |()| 0))
}

/// Becomes the spawner in a process that was just forked, and does not return.
pub(crate) fn run_forked_spawner(socket: OwnedFd, affinity: Option<CpuAffinity>) -> ! {
    // A failure does not matter: the spawner also ends when its socket closes. In both cases it cleans up first.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM));
    let code = run_spawner(socket, affinity).map_or(1, |()| 0);
    // SAFETY: ending the process has no preconditions; destructors of the parent's state must not run.
    unsafe { libc::_exit(code) }
}
