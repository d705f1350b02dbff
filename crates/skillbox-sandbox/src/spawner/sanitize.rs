//! Discards everything that the spawner inherited, before it reads anything.
#![expect(
    unsafe_code,
    reason = "descriptors by number, and the inherited environment is raw memory of the process"
)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit};

use crate::close_descriptors::close_all_except;
use crate::kernel::pseudo_file;
use crate::signals::reset_signals;

/// The descriptor of the request socket after [`sanitize_process`].
const REQUEST_SOCKET: RawFd = 3;

/// Keeps the request socket and nothing else: no descriptor, no environment, no argument, no handler, no core dump.
///
/// The process must have a single thread.
pub(super) fn sanitize_process(socket: OwnedFd) -> io::Result<OwnedFd> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    setrlimit(
        Resource::Core,
        Rlimit {
            current: Some(0),
            maximum: getrlimit(Resource::Core).maximum,
        },
    )?;
    // The spawner needs more than a dozen descriptors for each run. The limit of scripts is a step of the plan.
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    )?;
    let socket = keep_only_socket(socket)?;
    reset_signals()?;
    erase_arguments_and_environment()?;
    rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::chdir("/")?;
    // In a session of its own the spawner does not receive the signals of a terminal.
    match rustix::process::setsid() {
        // The spawner is a process group leader already.
        Ok(_) | Err(rustix::io::Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    rustix::thread::set_name(c"skillbox-spawn")?;
    Ok(socket)
}

/// Moves the socket to [`REQUEST_SOCKET`], closes every other descriptor, and opens `/dev/null` as the standard
/// streams.
fn keep_only_socket(socket: OwnedFd) -> io::Result<OwnedFd> {
    let raw = socket.into_raw_fd();
    if raw != REQUEST_SOCKET {
        // SAFETY: plain system calls on descriptor numbers. A descriptor at the target is closed on purpose, and no
        // other part of this process of one thread uses a descriptor that it inherited.
        if unsafe { libc::dup3(raw, REQUEST_SOCKET, libc::O_CLOEXEC) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    // SAFETY: as above: everything above the socket is closed on purpose.
    unsafe { close_all_except(&[REQUEST_SOCKET])? };
    let null = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDWR, rustix::fs::Mode::empty())?;
    for target in 0..REQUEST_SOCKET {
        // SAFETY: as above.
        if unsafe { libc::dup2(null.as_raw_fd(), target) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    // SAFETY: the number is a copy of the socket, which nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(REQUEST_SOCKET) })
}

/// Overwrites the arguments and the environment. A forked spawner inherits those of its parent in its memory, and every
/// child would inherit them from the spawner.
fn erase_arguments_and_environment() -> io::Result<()> {
    unsafe extern "C" {
        static mut environ: *mut *mut libc::c_char;
    }
    let ranges = argument_ranges(&pseudo_file::read("/proc/self/stat")?)?;
    // SAFETY: this is the only thread, so nothing reads or changes the environment meanwhile; the list ends with a
    // null pointer, each entry is a writable C string, and the list is empty afterwards.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            let length = libc::strlen(*entry);
            std::ptr::write_bytes(*entry, 0, length);
            *entry = std::ptr::null_mut();
            entry = entry.add(1);
        }
    }
    for (start, end) in ranges {
        // SAFETY: the kernel put the arguments and the environment of this process there, at the far end of its own
        // writable stack, and no reference to them is in use: this process never reads them again.
        unsafe { std::ptr::write_bytes(start as *mut u8, 0, end - start) };
    }
    Ok(())
}

/// The address ranges of the arguments and of the environment, from the text of `/proc/self/stat`.
fn argument_ranges(stat: &str) -> io::Result<Vec<(usize, usize)>> {
    let invalid = || io::Error::new(io::ErrorKind::InvalidData, "/proc/self/stat has an unknown format");
    // The name in parentheses can contain anything, so fields are counted from the third, which follows it.
    let (_, fields) = stat.rsplit_once(") ").ok_or_else(invalid)?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let address = |number: usize| fields.get(number - 3)?.parse::<usize>().ok();
    let mut ranges = Vec::new();
    // arg_start, arg_end, env_start and env_end in proc_pid_stat(5).
    for (start, end) in [(48, 49), (50, 51)] {
        let (start, end) = address(start).zip(address(end)).ok_or_else(invalid)?;
        match (start, end) {
            // The process has none, or the kernel hides them.
            (0, 0) => {}
            (start, end) if start <= end => ranges.push((start, end)),
            _ => return Err(invalid()),
        }
    }
    Ok(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_after_any_name_and_anything_else_is_an_error() {
        let fields = |last: &str| format!("7 (a) b) S {} {last}", vec!["1"; 44].join(" "));
        assert_eq!(argument_ranges(&fields("10 20 30 40 0")).unwrap(), [(10, 20), (30, 40)]);
        assert_eq!(argument_ranges(&fields("0 0 30 40 0")).unwrap(), [(30, 40)]);
        for wrong in ["10 20 30", "20 10 30 40", "x 20 30 40"] {
            assert!(argument_ranges(&fields(wrong)).is_err(), "{wrong}");
        }
        let own = argument_ranges(&pseudo_file::read("/proc/self/stat").unwrap()).unwrap();
        assert!(!own.is_empty());
    }
}
