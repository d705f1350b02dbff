//! wait4(2), which unlike waitid(2) also returns the CPU time of a child and of its descendants.
#![expect(unsafe_code, reason = "wait4(2) fills structures by pointer")]

use std::io;
use std::time::Duration;

/// A child that has exited.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExitedChild {
    pub pid: i32,
    /// The status as wait(2) encodes it.
    pub status: i32,
    /// CPU time of the child and of every descendant it waited for.
    pub cpu: Duration,
    /// The largest resident set among them, in bytes.
    pub peak_bytes: u64,
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
                let cpu = duration(usage.ru_utime) + duration(usage.ru_stime);
                // `ru_maxrss` is in KiB.
                let peak_bytes = u64::try_from(usage.ru_maxrss).unwrap_or(0).saturating_mul(1024);
                return Ok(Some(ExitedChild {
                    pid,
                    status,
                    cpu,
                    peak_bytes,
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

/// A measured time. The kernel never reports a negative one.
fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}
