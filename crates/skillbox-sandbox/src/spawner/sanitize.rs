//! The spawner's first act: let go of everything that came with its birth.
#![expect(
    unsafe_code,
    reason = "signal dispositions and the inherited environment are raw memory of the process"
)]

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

/// The descriptor that the request socket has after this.
pub(super) const SOCKET: RawFd = 3;

/// Keeps the request socket and nothing else: no descriptor, no environment, no argument, no handler, no core dump.
///
/// Must run in a process of one thread, with `socket` open.
pub(super) fn sanitize(socket: OwnedFd) -> io::Result<OwnedFd> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    setrlimit(
        Resource::Core,
        Rlimit {
            current: Some(0),
            maximum: rustix::process::getrlimit(Resource::Core).maximum,
        },
    )?;
    // A run takes more than a dozen; scripts have a limit of their own.
    let most = rustix::process::getrlimit(Resource::Nofile).maximum;
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: most,
            maximum: most,
        },
    )?;
    let socket = keep_only(socket)?;
    reset_signals();
    forget_birth();
    rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::chdir("/")?;
    // A terminal's signals are not for the spawner. Failing means that it leads a session already.
    let _ = rustix::process::setsid();
    rustix::thread::set_name(c"skillbox-spawn")?;
    Ok(socket)
}

/// Moves the socket to its place, closes all above it, and puts the empty device below it.
fn keep_only(socket: OwnedFd) -> io::Result<OwnedFd> {
    use std::os::fd::{AsRawFd, IntoRawFd};
    let raw = socket.into_raw_fd();
    if raw != SOCKET {
        // SAFETY: plain system calls on descriptor numbers; whatever was open at the target is closed on purpose, and
        // no other part of this one-thread process uses a descriptor after its birth.
        if unsafe { libc::dup3(raw, SOCKET, libc::O_CLOEXEC) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    // SAFETY: as above: everything above the socket is closed on purpose.
    if unsafe { libc::syscall(libc::SYS_close_range, SOCKET + 1, u32::MAX, 0) } < 0 {
        close_one_by_one()?;
    }
    let null = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDWR, rustix::fs::Mode::empty())?;
    for target in 0..SOCKET {
        // SAFETY: as above.
        if unsafe { libc::dup2(null.as_raw_fd(), target) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    // SAFETY: the number was just filled with a copy of the socket, and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(SOCKET) })
}

/// Before close_range(2): as many as can be open.
fn close_one_by_one() -> io::Result<()> {
    let highest = rustix::process::getrlimit(Resource::Nofile).maximum.unwrap_or(1 << 20);
    for descriptor in SOCKET + 1..i32::try_from(highest).unwrap_or(i32::MAX) {
        // SAFETY: closing a number that nothing in this process uses.
        unsafe { libc::close(descriptor) };
    }
    Ok(())
}

/// Default dispositions and an empty mask: Rust ignores SIGPIPE, and a child would inherit that.
pub(crate) fn reset_signals() {
    // SAFETY: installing default dispositions and an empty mask touches no memory of ours.
    unsafe {
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Overwrites arguments and environment. A spawner that was forked has its parent's in memory, and so would every
/// child of it.
fn forget_birth() {
    unsafe extern "C" {
        static mut environ: *mut *mut libc::c_char;
    }
    // SAFETY: this is the only thread, so nobody reads or changes the environment meanwhile; the list ends with a
    // null pointer, each entry is a writable C string, and the list is emptied afterwards.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            let length = libc::strlen(*entry);
            std::ptr::write_bytes(*entry, 0, length);
            *entry = std::ptr::null_mut();
            entry = entry.add(1);
        }
    }
    for (start, end) in birth_ranges() {
        // SAFETY: the kernel put the arguments and the environment of this process there, at the far end of its own
        // writable stack, and no reference to them is in use: this process never looks at them again.
        unsafe { std::ptr::write_bytes(start as *mut u8, 0, end - start) };
    }
}

/// Where the kernel put the arguments and the environment.
fn birth_ranges() -> Vec<(usize, usize)> {
    let stat = crate::kernel::made_up::read("/proc/self/stat").unwrap_or_default();
    let fields: Vec<usize> = stat
        .rsplit(") ")
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .map(|field| field.parse().unwrap_or(0))
        .collect();
    // The fields 48 to 51 of proc_pid_stat(5), counted from the third, which follows the name.
    [(45, 46), (47, 48)]
        .into_iter()
        .filter_map(|(start, end)| Some((*fields.get(start)?, *fields.get(end)?)))
        .filter(|(start, end)| *start > 0 && start < end)
        .collect()
}
