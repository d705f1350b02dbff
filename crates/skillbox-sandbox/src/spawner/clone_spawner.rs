//! Clones the single-threaded spawner.
#![expect(
    unsafe_code,
    reason = "a clone is safe only in a process of one thread, which this one is"
)]

use std::io;
use std::os::fd::BorrowedFd;

use crate::kernel::clone::{CloneResult, clone_process};

/// Clones the spawner. The child starts in new namespaces, and in a control group if one is given (cgroup v2).
pub(super) fn clone_spawner(namespaces: u64, cgroup: Option<BorrowedFd<'_>>) -> io::Result<CloneResult> {
    // SAFETY: the spawner has one thread: it is a fresh process, started by exec or by a fork before any thread
    // existed, and nothing in this crate starts one.
    unsafe { clone_process(namespaces, cgroup) }
}
