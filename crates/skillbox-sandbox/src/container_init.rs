//! What pid 1 of a container needs from this crate: start a command, reap children, and restrict itself.

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
    /// The errno if the command could not be executed; the child process has then exited with code 127.
    pub exec_error: Option<i32>,
}

/// A reaped child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReapedChild {
    /// Its pid.
    pub pid: i32,
    /// Its exit code, unless a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended it, if any.
    pub signal: Option<i32>,
}

/// A signalfd(2) for SIGCHLD, which becomes readable when a child ends.
#[derive(Debug)]
pub struct ChildSignals(SignalFd);

/// Starts a command in a new session. The command inherits the standard streams of this process. A program name without
/// a slash is searched for in the `PATH` of `env`.
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

/// Reaps one child that has ended, without waiting. Returns none if all children are running, and an error if there is
/// no child.
pub fn reap_child() -> io::Result<Option<ReapedChild>> {
    let exited = reap(None, WaitMode::NoHang)?;
    Ok(exited.map(|exited| ReapedChild {
        pid: exited.pid,
        exit_code: libc::WIFEXITED(exited.status).then(|| libc::WEXITSTATUS(exited.status)),
        signal: libc::WIFSIGNALED(exited.status).then(|| libc::WTERMSIG(exited.status)),
    }))
}

/// Restores the default signal dispositions, which commands inherit, and opens a descriptor that reports ended
/// children.
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
    /// Discards the signals received so far.
    pub fn clear(&mut self) {
        while let Ok(Some(_)) = self.0.read_signal() {}
    }
}

impl AsFd for ChildSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The Landlock ABI version of this kernel; 0 without Landlock.
pub fn landlock_abi() -> u8 {
    host::landlock_abi()
}

/// Restricts this process and everything it starts with Landlock.
///
/// With `files`, only the listed accesses to files are allowed; `refuse_tcp` denies to bind and connect TCP sockets;
/// `scope` denies signals and abstract sockets to processes outside.
pub fn restrict_self(abi: u8, files: Option<&[LandlockRule]>, refuse_tcp: bool, scope: bool) -> io::Result<()> {
    child::restrict_self(abi, files, refuse_tcp.then_some(&[]), scope)
}

/// Replaces the standard streams of this process.
pub fn replace_standard_streams(stdin: OwnedFd, stdout: OwnedFd, stderr: OwnedFd) -> io::Result<()> {
    rustix::stdio::dup2_stdin(stdin)?;
    rustix::stdio::dup2_stdout(stdout)?;
    rustix::stdio::dup2_stderr(stderr)?;
    Ok(())
}
