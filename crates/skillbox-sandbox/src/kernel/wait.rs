//! wait4(2), for what waitid(2) does not tell: the CPU time of a child and of everything below it.
#![expect(unsafe_code, reason = "wait4(2) fills structures by pointer")]

use std::io;
use std::time::Duration;

/// A child that ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub pid: i32,
    /// The status as wait(2) encodes it.
    pub status: i32,
    /// CPU time of the child and of every descendant it waited for.
    pub cpu: Duration,
    /// The largest resident set among them.
    pub peak_bytes: u64,
}

/// Whether to wait for an end or only to look for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    Look,
    Wait,
}

/// Reaps one child: a certain one, or any. None when none has ended.
pub(crate) fn reap(pid: Option<i32>, patience: Patience) -> io::Result<Option<Ended>> {
    let mut status = 0;
    // SAFETY: all zeros is a valid `rusage`: it holds numbers only.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let options = match patience {
        Patience::Look => libc::WNOHANG,
        Patience::Wait => 0,
    } | libc::__WALL;
    loop {
        // SAFETY: both pointers are to live, writable values of the right type.
        let result = unsafe { libc::wait4(pid.unwrap_or(-1), &raw mut status, options, &raw mut usage) };
        match result {
            0 => return Ok(None),
            pid if pid > 0 => {
                let cpu = duration(usage.ru_utime) + duration(usage.ru_stime);
                let peak_bytes = u64::try_from(usage.ru_maxrss).unwrap_or(0).saturating_mul(1024);
                return Ok(Some(Ended {
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

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}
