//! wait4(2), which reports the resource usage of a child in addition to its status.
#![expect(unsafe_code, reason = "wait4(2) fills structures by pointer")]

use std::io;
use std::time::Duration;

/// A child that has exited.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExitedChild {
    pub pid: i32,
    /// The status as wait(2) encodes it.
    pub status: i32,
    /// The CPU time of the child and of every descendant that was waited for.
    pub cpu_time: Duration,
    /// The largest resident set among them, in bytes.
    pub peak_memory_bytes: u64,
}

/// Whether to wait until a child exits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitMode {
    /// Return at once (`WNOHANG`).
    NoHang,
    /// Block until a child exits.
    Block,
}

/// Reaps the child with this pid, or any child. Returns `None` if no such child has exited.
pub(crate) fn reap(pid: Option<i32>, mode: WaitMode) -> io::Result<Option<ExitedChild>> {
    let mut status = 0;
    // SAFETY: all zeros is a valid `rusage`: it contains numbers only.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let options = match mode {
        WaitMode::NoHang => libc::WNOHANG,
        WaitMode::Block => 0,
    } | libc::__WALL;
    loop {
        // SAFETY: both pointers are to live, writable values of the right type.
        let result = unsafe { libc::wait4(pid.unwrap_or(-1), &raw mut status, options, &raw mut usage) };
        match result {
            0 => return Ok(None),
            pid if pid > 0 => {
                let cpu_time = duration(usage.ru_utime) + duration(usage.ru_stime);
                // `ru_maxrss` is in KiB.
                let peak_memory_bytes = u64::try_from(usage.ru_maxrss).unwrap_or(0).saturating_mul(1024);
                return Ok(Some(ExitedChild {
                    pid,
                    status,
                    cpu_time,
                    peak_memory_bytes,
                }));
            }
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

/// Converts a time that the kernel measured, which is never negative.
fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}
