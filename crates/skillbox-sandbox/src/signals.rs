//! Signal dispositions and masks.
#![expect(unsafe_code, reason = "dispositions and masks are set through raw structures")]

use std::io;

/// The highest signal number of Linux.
const MAX_SIGNAL: i32 = 64;

/// Restores default dispositions and an empty mask. Rust programs ignore SIGPIPE, and a child would inherit that.
pub(crate) fn reset_signals() -> io::Result<()> {
    for signal in 1..=MAX_SIGNAL {
        match (signal, set_disposition(signal, Disposition::Default)) {
            // The kernel keeps these two at their default.
            (libc::SIGKILL | libc::SIGSTOP, _) => {}
            // C libraries reserve the first real-time signals for threads, and refuse them: glibc two, musl three.
            (32..=34, Err(error)) if error.raw_os_error() == Some(libc::EINVAL) => {}
            (_, result) => result?,
        }
    }
    // SAFETY: an all-zero set is valid memory for sigemptyset, which initialises it.
    let mut empty: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set outlives both calls; the old mask is not asked for.
    unsafe {
        libc::sigemptyset(&raw mut empty);
        check(libc::sigprocmask(
            libc::SIG_SETMASK,
            &raw const empty,
            std::ptr::null_mut(),
        ))
    }
}

/// Makes the end of a child interrupt a wait, and nothing else: SIGCHLD is blocked and has a handler that does nothing.
pub(crate) fn block_child_signals() -> io::Result<()> {
    set_disposition(libc::SIGCHLD, Disposition::Interrupt)?;
    // SAFETY: as in `reset_signals`.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: as in `reset_signals`.
    unsafe {
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        check(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()))
    }
}

/// What a signal does.
#[derive(Clone, Copy)]
enum Disposition {
    /// The default action.
    Default,
    /// It interrupts a system call.
    Interrupt,
}

fn set_disposition(signal: i32, disposition: Disposition) -> io::Result<()> {
    extern "C" fn do_nothing(_: libc::c_int) {}
    // SAFETY: an all-zero `sigaction` is valid: no flags and an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = match disposition {
        Disposition::Default => libc::SIG_DFL,
        Disposition::Interrupt => do_nothing as *const () as usize,
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
