//! The same code for a program that is pid 1 of a container: starting a command, reaping, restricting itself.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::kernel::spawn::{Program, candidates, spawn};
use crate::kernel::wait::{Patience, reap};
use crate::plan::LandlockRule;
use crate::{child, host, spawner};

/// A command that was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartedCommand {
    /// Its pid.
    pub pid: i32,
    /// Why it could not be executed; the process has ended then, with code 127.
    pub exec_error: Option<i32>,
}

/// A child that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedChild {
    /// Its pid.
    pub pid: i32,
    /// Its exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

/// Tells when a child has ended.
#[derive(Debug)]
pub struct ChildSignals(SignalFd);

/// Starts a command with our standard streams, in a session of its own, looked up in the `PATH` of its environment.
pub fn start_command(argv: &[CString], env: &[CString]) -> io::Result<StartedCommand> {
    let Some(name) = argv.first() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let program = Program {
        paths: &candidates(name, env),
        argv,
        env,
        join: &[],
    };
    let spawned = spawn(&program, false)?;
    Ok(StartedCommand {
        pid: spawned.pid,
        exec_error: spawned.exec_error,
    })
}

/// Reaps one child that has ended already; none when all of them live. No child at all is an error.
pub fn reap_ended() -> io::Result<Option<EndedChild>> {
    let ended = reap(None, Patience::Look)?;
    Ok(ended.map(|ended| EndedChild {
        pid: ended.pid,
        exit_code: libc::WIFEXITED(ended.status).then(|| libc::WEXITSTATUS(ended.status)),
        signal: libc::WIFSIGNALED(ended.status).then(|| libc::WTERMSIG(ended.status)),
    }))
}

/// Default dispositions, which commands inherit, and from now on a descriptor for the ends of children.
pub fn watch_children() -> io::Result<ChildSignals> {
    spawner::reset_signals();
    let mut ended = SigSet::empty();
    ended.add(Signal::SIGCHLD);
    ended.thread_block()?;
    Ok(ChildSignals(SignalFd::with_flags(
        &ended,
        SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK,
    )?))
}

impl ChildSignals {
    /// Forgets what was told so far.
    pub fn clear(&mut self) {
        while let Ok(Some(_)) = self.0.read_signal() {}
    }
}

impl AsFd for ChildSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The version of Landlock that this kernel speaks, 0 for none.
pub fn landlock_version() -> u8 {
    host::landlock_abi()
}

/// Restricts this process and everything it starts; see the plan's operation of the same name.
pub fn restrict(abi: u8, files: Option<&[LandlockRule]>, refuse_tcp: bool, scope: bool) -> io::Result<()> {
    child::restrict(abi, files, refuse_tcp, scope)
}

/// Puts three descriptors where a command expects its standard streams.
pub fn take_streams(stdin: OwnedFd, stdout: OwnedFd, stderr: OwnedFd) -> io::Result<()> {
    rustix::stdio::dup2_stdin(stdin)?;
    rustix::stdio::dup2_stdout(stdout)?;
    rustix::stdio::dup2_stderr(stderr)?;
    Ok(())
}
