//! Signal dispositions and masks.
#![expect(unsafe_code, reason = "dispositions and masks are set through raw structures")]

use std::io;

/// The highest signal number on Linux.
const MAX_SIGNAL: i32 = 64;

/// Restores default dispositions and an empty mask. Rust programs ignore SIGPIPE, and a child would inherit that.
pub(crate) fn reset_signals() -> io::Result<()> {
    for signal in 1..=MAX_SIGNAL {
        match (signal, set_disposition(signal, Disposition::Default)) {
            // The disposition of these two cannot be changed.
            (libc::SIGKILL | libc::SIGSTOP, _) => {}
            // C libraries reserve the first real-time signals for threads, glibc two and musl three, and refuse to
            // change them.
            (32..=34, Err(error)) if error.raw_os_error() == Some(libc::EINVAL) => {}
            (_, result) => result?,
        }
    }
    // SAFETY: an all-zero set is valid memory for sigemptyset, which initialises it.
    let mut empty: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set outlives both calls; the old mask is not requested.
    unsafe {
        libc::sigemptyset(&raw mut empty);
        check(libc::sigprocmask(
            libc::SIG_SETMASK,
            &raw const empty,
            std::ptr::null_mut(),
        ))
    }
}

/// Blocks SIGCHLD and installs an empty handler for it. A ppoll(2) that unblocks SIGCHLD is then interrupted when a
/// child ends, and no other system call is.
pub(crate) fn block_child_signals() -> io::Result<()> {
    set_disposition(libc::SIGCHLD, Disposition::EmptyHandler)?;
    // SAFETY: as in `reset_signals`.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: as in `reset_signals`.
    unsafe {
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        check(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()))
    }
}

/// The reaction to a signal.
#[derive(Clone, Copy)]
enum Disposition {
    /// The default action.
    Default,
    /// A handler that does nothing, so that the signal only interrupts a system call.
    EmptyHandler,
}

fn set_disposition(signal: i32, disposition: Disposition) -> io::Result<()> {
    extern "C" fn do_nothing(_: libc::c_int) {}
    // SAFETY: an all-zero `sigaction` is valid: no flags and an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = match disposition {
        Disposition::Default => libc::SIG_DFL,
        Disposition::EmptyHandler => do_nothing as *const () as usize,
    };
    // SAFETY: the structure outlives the call, and the handler touches no memory.
    check(unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) })
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_cannot_be_changed_is_an_error() {
        let error = set_disposition(libc::SIGKILL, Disposition::Default).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }
}
