//! The parts of the sandbox that a program uses as pid 1 of a container: it starts a command, reaps, and restricts itself.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::kernel::spawn::{Program, executable_candidates, spawn};
use crate::kernel::wait::{WaitMode, reap};
use crate::plan::LandlockRule;
use crate::signals::reset_signals;
use crate::{child, host};

/// A started command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartedCommand {
    /// Its pid.
    pub pid: i32,
    /// Why it could not be executed; the process has then exited with code 127.
    pub exec_error: Option<i32>,
}

/// A reaped child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReapedChild {
    /// Its pid.
    pub pid: i32,
    /// Its exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

/// A descriptor that becomes readable when a child ends.
#[derive(Debug)]
pub struct ChildSignals(SignalFd);

/// Starts a command with our standard streams, in a session of its own. A program without a slash is searched for in the
/// `PATH` of its environment.
pub fn start_command(argv: &[CString], env: &[CString]) -> io::Result<StartedCommand> {
    let Some(name) = argv.first() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let program = Program {
        paths: &executable_candidates(name, env),
        argv,
        env,
        tasks_fds: &[],
        is_join_required: false,
    };
    let spawned = spawn(&program)?;
    Ok(StartedCommand {
        pid: spawned.pid,
        exec_error: spawned.exec_error,
    })
}

/// Reaps one child that has ended; none when all children live. Without any child it is an error.
pub fn reap_child() -> io::Result<Option<ReapedChild>> {
    let exited = reap(None, WaitMode::NoHang)?;
    Ok(exited.map(|exited| ReapedChild {
        pid: exited.pid,
        exit_code: libc::WIFEXITED(exited.status).then(|| libc::WEXITSTATUS(exited.status)),
        signal: libc::WIFSIGNALED(exited.status).then(|| libc::WTERMSIG(exited.status)),
    }))
}

/// Restores the default signal dispositions, which commands inherit, and opens a descriptor for the ends of children.
pub fn watch_children() -> io::Result<ChildSignals> {
    reset_signals()?;
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGCHLD);
    signals.thread_block()?;
    Ok(ChildSignals(SignalFd::with_flags(
        &signals,
        SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK,
    )?))
}

impl ChildSignals {
    /// Discards the signals so far.
    pub fn clear(&mut self) {
        while let Ok(Some(_)) = self.0.read_signal() {}
    }
}

impl AsFd for ChildSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The version of Landlock that this kernel has; 0 for none.
pub fn landlock_abi() -> u8 {
    host::landlock_abi()
}

/// Restricts this process and everything it starts by Landlock.
pub fn restrict_self(abi: u8, files: Option<&[LandlockRule]>, refuse_tcp: bool, scope: bool) -> io::Result<()> {
    child::restrict_self(abi, files, refuse_tcp, scope)
}

/// Replaces the standard streams of this process.
pub fn replace_standard_streams(stdin: OwnedFd, stdout: OwnedFd, stderr: OwnedFd) -> io::Result<()> {
    rustix::stdio::dup2_stdin(stdin)?;
    rustix::stdio::dup2_stdout(stdout)?;
    rustix::stdio::dup2_stderr(stderr)?;
    Ok(())
}
