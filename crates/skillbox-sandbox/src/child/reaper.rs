//! Pid 1 as the reaper: it reaps every process that ends, and exits when the command ends or the server disconnects. In
//! a parked sandbox it does not watch the server; the spawner does.
#![expect(unsafe_code, reason = "ppoll(2) takes a raw signal mask")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::process::{Pid, Signal, kill_process, set_child_subreaper};

use crate::kernel::wait::{WaitMode, reap};

/// Closes the standard streams of the reaper, so that their other ends notice when the command closes its copies.
pub(super) fn close_stdio() {
    for descriptor in 0..3 {
        // SAFETY: the reaper uses none of the three.
        unsafe { libc::close(descriptor) };
    }
}

/// Reaps children until the command ends, and returns the status of the command; none if the server disconnected first.
/// Without `server`, only the end of the command is awaited.
pub(super) fn reap_until_command_ends(command: i32, server: Option<&OwnedFd>) -> Option<i32> {
    loop {
        loop {
            match reap(None, WaitMode::NoHang) {
                Ok(Some(ended)) if ended.pid == command => return Some(ended.status),
                Ok(Some(_)) => {}
                Ok(None) => break,
                // No child is left, although the command was never reaped.
                Err(_) => return None,
            }
        }
        match wait_for_child_or_server(server) {
            Ok(Wakeup::Child) => {}
            // A reaper that cannot wait would not notice the server, so it ends the sandbox.
            Ok(Wakeup::Server) | Err(_) => return None,
        }
    }
}

/// Why the reaper woke up.
enum Wakeup {
    /// A signal interrupted the wait: a child may have ended.
    Child,
    /// The server closed its end or shut it down. It never sends anything on this socket.
    Server,
}

fn wait_for_child_or_server(server: Option<&OwnedFd>) -> io::Result<Wakeup> {
    let mut watched = libc::pollfd {
        fd: server.map_or(-1, |server| server.as_fd().as_raw_fd()),
        events: libc::POLLIN | libc::POLLRDHUP,
        revents: 0,
    };
    // SAFETY: the mask is initialised by sigemptyset, and the one entry outlives the call. SIGCHLD is unblocked only
    // during the call, so no signal between the last reap and the wait is lost.
    let result = unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::ppoll(&raw mut watched, 1, std::ptr::null(), &raw const none)
    };
    if result > 0 {
        return Ok(Wakeup::Server);
    }
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::Interrupted => Ok(Wakeup::Child),
        error => Err(error),
    }
}

/// The descendants of this process in a run without a pid namespace, where the kernel kills none of them at the end.
pub(super) struct Descendants {
    /// The `children` file of this process.
    children: OwnedFd,
}

impl Descendants {
    /// Makes this process the parent of its orphaned descendants, which otherwise become children of the host's init.
    pub fn adopt(proc: Option<&OwnedFd>) -> io::Result<Self> {
        let pid = rustix::process::getpid();
        set_child_subreaper(Some(pid))?;
        let open = |directory: BorrowedFd<'_>, path: String| {
            openat(directory, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        };
        let pid = pid.as_raw_nonzero();
        let children = match proc {
            Some(proc) => open(proc.as_fd(), format!("self/task/{pid}/children"))?,
            None => open(CWD, format!("/proc/self/task/{pid}/children"))?,
        };
        Ok(Self { children })
    }

    /// The descriptor that must stay open until [`Self::kill_all`].
    pub fn fd(&self) -> RawFd {
        self.children.as_raw_fd()
    }

    /// Kills every child until none is left. The children of a killed child become children of this process.
    ///
    /// If a child cannot be killed, because it has ended or changed its user, the others are killed nevertheless, and
    /// the loop waits for the end of that child.
    pub fn kill_all(&self) -> io::Result<()> {
        loop {
            let mut buffer = [0; 4096];
            let length = rustix::io::pread(&self.children, &mut buffer, 0)?;
            for pid in complete_pids(&buffer[..length]) {
                let _ = kill_process(pid, Signal::KILL);
            }
            match reap(None, WaitMode::Block) {
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

/// The pids in a list in which a space follows each pid. A last pid without a space is truncated, and would be the pid
/// of another process, so it is ignored.
fn complete_pids(text: &[u8]) -> impl Iterator<Item = Pid> {
    text.split_inclusive(|byte| *byte == b' ')
        .filter_map(|word| word.strip_suffix(b" "))
        .filter_map(|word| std::str::from_utf8(word).ok()?.parse().ok())
        .filter_map(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pid_that_is_cut_off_is_not_taken_for_another_one() {
        let pids = |text: &[u8]| -> Vec<i32> { complete_pids(text).map(|pid| pid.as_raw_nonzero().get()).collect() };
        assert_eq!(pids(b"12 345 6789 "), [12, 345, 6789]);
        assert_eq!(pids(b"12 345 67"), [12, 345]);
        assert_eq!(pids(b""), Vec::<i32>::new());
    }
}
