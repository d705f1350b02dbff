//! Closes descriptors by number.
#![expect(unsafe_code, reason = "descriptors are closed by number")]

use std::io;
use std::os::fd::RawFd;

use rustix::process::{Resource, getrlimit};

/// Closes every descriptor above 2 that is not in `kept`, which must be sorted.
///
/// # Safety
/// No value that owns one of the closed descriptors may be used or dropped afterwards.
pub(crate) unsafe fn close_all_except(kept: &[RawFd]) -> io::Result<()> {
    let mut first = 3;
    for descriptor in kept {
        // SAFETY: as the caller guarantees.
        unsafe { close_range(first, descriptor - 1)? };
        first = descriptor + 1;
    }
    // SAFETY: as the caller guarantees.
    unsafe { close_range(first, RawFd::MAX) }
}

/// Closes a range with close_range(2), or in a loop before Linux 5.9, which lacks it.
///
/// # Safety
/// As for [`close_all_except`].
unsafe fn close_range(first: RawFd, last: RawFd) -> io::Result<()> {
    if first > last {
        return Ok(());
    }
    // SAFETY: a system call on numbers; the caller guarantees that nothing uses them.
    if unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() != Some(libc::ENOSYS) {
        return Err(error);
    }
    for descriptor in first..=last.min(highest_descriptor()?) {
        // SAFETY: as above. Most of these numbers are not open, which close(2) reports as EBADF.
        unsafe { libc::close(descriptor) };
    }
    Ok(())
}

/// The highest number that a descriptor of this process can have.
fn highest_descriptor() -> io::Result<RawFd> {
    match getrlimit(Resource::Nofile).maximum {
        Some(count) => RawFd::try_from(count).map_err(io::Error::other),
        // A process without a limit is still limited by fs.nr_open.
        None => {
            let text = std::fs::read_to_string("/proc/sys/fs/nr_open")?;
            text.trim().parse().map_err(io::Error::other)
        }
    }
}
