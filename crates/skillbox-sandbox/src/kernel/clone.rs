//! clone3(2), and clone(2) where clone3 is missing or a system call filter refuses it.
#![expect(unsafe_code, reason = "no crate wraps clone3 with namespaces and a control group")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// `CLONE_CLEAR_SIGHAND`: the child has the default signal handlers.
const CLEAR_SIGHAND: u64 = 1 << 32;
/// `CLONE_INTO_CGROUP`: the child starts in a given control group.
const INTO_CGROUP: u64 = 1 << 33;

/// The process that a clone returned to.
pub(crate) enum CloneResult {
    /// The parent, with the pid of the child and a pidfd for it.
    Parent { pid: i32, pidfd: OwnedFd },
    /// The child.
    Child,
}

/// `struct clone_args`, version 2 (Linux 5.7), which has the field `cgroup`.
#[repr(C)]
#[derive(Default)]
struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// Clones this process into new namespaces (`CLONE_NEW…` flags) and into a control group, if one is given.
///
/// # Safety
/// The process must have a single thread: the child continues with a copy of its memory, and a lock that another
/// thread held would stay locked forever.
pub(crate) unsafe fn clone_process(namespaces: u64, cgroup: Option<BorrowedFd<'_>>) -> io::Result<CloneResult> {
    let mut pidfd: libc::c_int = -1;
    let flags = namespaces | libc::CLONE_PIDFD as u64 | CLEAR_SIGHAND;
    let mut arguments = CloneArguments {
        flags: if cgroup.is_some() { flags | INTO_CGROUP } else { flags },
        pidfd: (&raw mut pidfd) as u64,
        exit_signal: libc::SIGCHLD as u64,
        cgroup: cgroup.map_or(0, |cgroup| cgroup.as_raw_fd() as u64),
        ..CloneArguments::default()
    };
    let size = size_of::<CloneArguments>();
    // SAFETY: the size is that of the arguments, which outlive the call; no stack is given, so the child continues on a
    // copy of this one; the caller guarantees a single thread.
    let mut result = unsafe { libc::syscall(libc::SYS_clone3, &raw mut arguments, size) };
    let lacks_clone3 = result < 0 && matches!(io::Error::last_os_error().raw_os_error(), Some(libc::ENOSYS));
    if lacks_clone3 && cgroup.is_none() {
        // SAFETY: as above; clone(2) stores the pidfd in place of the parent's tid.
        result = unsafe { clone_without_clone3(namespaces, &raw mut pidfd) };
    }
    match result {
        0 => Ok(CloneResult::Child),
        pid if pid > 0 => {
            // SAFETY: the kernel returned this new descriptor, which nothing else owns.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            let pid = i32::try_from(pid)
                .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, format!("clone returned the pid {pid}")))?;
            Ok(CloneResult::Parent { pid, pidfd })
        }
        _ => Err(io::Error::last_os_error()),
    }
}

/// # Safety
/// As for [`clone_process`]; `pidfd` must be valid for a write.
unsafe fn clone_without_clone3(namespaces: u64, pidfd: *mut libc::c_int) -> libc::c_long {
    let flags = namespaces | libc::CLONE_PIDFD as u64 | libc::SIGCHLD as u64;
    // SAFETY: the caller guarantees the pointer and a single thread; a null stack means a copy of this one.
    unsafe { libc::syscall(libc::SYS_clone, flags, 0_u64, pidfd, 0_u64, 0_u64) }
}
