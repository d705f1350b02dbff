//! clone3(2), with clone(2) where it is refused.
#![expect(unsafe_code, reason = "a child that shares nothing is made by a raw system call")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// `CLONE_CLEAR_SIGHAND`: the child has default signal handlers.
const CLEAR_SIGHAND: u64 = 1 << 32;
/// `CLONE_INTO_CGROUP`: the child is born in a control group.
const INTO_CGROUP: u64 = 1 << 33;

/// Which side of the clone this is.
pub(crate) enum Cloned {
    /// The parent, with the child's number and a descriptor of it.
    Parent { pid: i32, pidfd: OwnedFd },
    /// The child.
    Child,
}

/// `struct clone_args` in its second version.
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

/// Clones this process into new namespaces.
///
/// # Safety
/// The process must have a single thread: the child goes on with a copy of its memory, and a lock that another
/// thread held would stay locked for ever.
pub(crate) unsafe fn clone_process(namespaces: u64, cgroup: Option<BorrowedFd<'_>>) -> io::Result<Cloned> {
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
    // SAFETY: the arguments are as long as said and outlive the call; no stack is given, so the child goes on with a
    // copy of this one; the caller vouches for a single thread.
    let mut result = unsafe { libc::syscall(libc::SYS_clone3, &raw mut arguments, size) };
    let refused = result < 0 && matches!(io::Error::last_os_error().raw_os_error(), Some(libc::ENOSYS));
    if refused && cgroup.is_none() {
        // SAFETY: as above; the pidfd is stored where the parent's tid would be.
        result = unsafe { legacy(namespaces, &raw mut pidfd) };
    }
    match result {
        0 => Ok(Cloned::Child),
        pid if pid > 0 => {
            // SAFETY: the kernel just made this descriptor for us.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            Ok(Cloned::Parent {
                pid: i32::try_from(pid).unwrap_or(i32::MAX),
                pidfd,
            })
        }
        _ => Err(io::Error::last_os_error()),
    }
}

/// # Safety
/// As for [`clone_process`]; `pidfd` must be valid for a write.
unsafe fn legacy(namespaces: u64, pidfd: *mut libc::c_int) -> libc::c_long {
    let flags = namespaces | libc::CLONE_PIDFD as u64 | libc::SIGCHLD as u64;
    // SAFETY: the caller vouches for the pointer and for a single thread; a null stack means a copy of this one.
    unsafe { libc::syscall(libc::SYS_clone, flags, 0_u64, pidfd, 0_u64, 0_u64) }
}
