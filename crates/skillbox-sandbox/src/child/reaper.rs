//! Pid 1: reaps whatever ends, and ends itself with the command or with the server. Of a sandbox that was parked, the
//! spawner watches the server instead.
#![expect(unsafe_code, reason = "signal masks and handlers are set through raw structures")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::process::{Pid, Signal, kill_process, set_child_subreaper};

use super::Child;
use crate::kernel::wait::{Patience, reap};

/// Makes the end of a child interrupt a wait, and nothing else.
pub(super) fn block_child_signals() -> io::Result<()> {
    extern "C" fn wake(_: libc::c_int) {}
    // SAFETY: the handler does nothing, the structures are valid when zeroed and outlive the calls.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = wake as *const () as usize;
        libc::sigaction(libc::SIGCHLD, &raw const action, std::ptr::null_mut());
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        if libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Lets go of the command's pipes: their ends are the command's alone.
pub(super) fn close_stdio() {
    for descriptor in 0..3 {
        // SAFETY: the reaper uses none of the three.
        unsafe { libc::close(descriptor) };
    }
}

/// Reaps children until the command ends, and returns its status; none when the server went away or asked for the end.
pub(super) fn reap_until(command: i32, server: Option<&OwnedFd>) -> Option<i32> {
    loop {
        loop {
            match reap(None, Patience::Look) {
                Ok(Some(ended)) if ended.pid == command => return Some(ended.status),
                Ok(Some(_)) => {}
                Ok(None) => break,
                // No child is left, though the command never ended: there is nothing to wait for.
                Err(_) => return None,
            }
        }
        if server_is_gone(server) {
            return None;
        }
    }
}

/// Waits for a child's end or for the server; the server never sends anything but its end.
fn server_is_gone(server: Option<&OwnedFd>) -> bool {
    let mut watched = libc::pollfd {
        fd: server.map_or(-1, |server| server.as_fd().as_raw_fd()),
        events: libc::POLLIN | libc::POLLRDHUP,
        revents: 0,
    };
    // SAFETY: the mask is empty and valid, the one entry is live for the call. The mask lets SIGCHLD in only here, so
    // none is missed between the reaping and the wait.
    let result = unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::ppoll(&raw mut watched, 1, std::ptr::null(), &raw const none)
    };
    result > 0 && watched.revents != 0
}

/// The end of a run without a pid namespace: the kernel kills nobody for us.
pub(super) struct Hunt {
    children: OwnedFd,
}

impl Hunt {
    pub(super) fn descriptor(&self) -> RawFd {
        self.children.as_raw_fd()
    }

    /// Kills every child, and with each of them its children become ours, until none is left.
    pub(super) fn kill_descendants(&self) {
        loop {
            let mut buffer = [0; 4096];
            let length = rustix::io::pread(&self.children, &mut buffer, 0).unwrap_or(0);
            let text = String::from_utf8_lossy(&buffer[..length]);
            for pid in text
                .split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .filter_map(Pid::from_raw)
            {
                let _ = kill_process(pid, Signal::KILL);
            }
            if reap(None, Patience::Wait).is_err() {
                return;
            }
        }
    }
}

impl Child<'_> {
    /// Orphans come to us instead of the host's init, so that the end finds them all.
    pub(super) fn adopt_orphans(&mut self) -> io::Result<()> {
        set_child_subreaper(Some(rustix::process::getpid()))?;
        let pid = rustix::process::getpid().as_raw_nonzero();
        let open = |directory: BorrowedFd<'_>, path: String| {
            openat(directory, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        };
        let children = match &self.belongings.proc {
            Some(proc) => open(proc.as_fd(), format!("self/task/{pid}/children"))?,
            None => open(CWD, format!("/proc/self/task/{pid}/children"))?,
        };
        self.hunts = Some(Hunt { children });
        Ok(())
    }
}
