//! The spawner's life: take requests, launch, reap, prepare for the next run when idle, and end with the server.
#![expect(
    unsafe_code,
    reason = "a clone is safe only in a process of one thread, which this one is"
)]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::beside::Processors;
use super::protocol::{Answer, Request, decode, tell};
use super::requests::refuse_for_want_of_descriptors;
use super::runs::{Run, wait};
use super::sanitize::sanitize;
use super::set_up::Spawning;
use crate::kernel::clone::{Cloned, clone_process};
use crate::kernel::socket;

/// Lives as the spawner behind `socket` until the other end closes. Its children may use these processors, where it
/// itself was sent away from one.
pub(super) fn live(socket: OwnedFd, processors: Option<Processors>) -> io::Result<()> {
    let socket = sanitize(socket)?;
    let mut buffer = vec![0; socket::MAX_MESSAGE];
    let first = socket::receive(socket.as_fd(), &mut buffer)?.whole()?;
    let Ok(Request::Begin(options)) = decode(&buffer[..first.length]) else {
        return Err(io::Error::from_raw_os_error(libc::EPROTO));
    };
    let mut spawning = Spawning::set_up(&options);
    spawning.processors = processors;
    if let Some(answers) = first.descriptors.first() {
        tell(answers, &Answer::Facts(Box::new(spawning.facts.clone())), &[]);
    }
    drop(first);
    spawning.make_ahead();
    let termination = termination()?;
    let mut runs: Vec<Run> = Vec::new();
    loop {
        let patience = if spawning.has_preparations() {
            Some(spawning.slots.until_calm())
        } else {
            spawning.slots.until_idle()
        };
        let event = wait(&socket, &termination, &runs, patience)?;
        if event.terminated {
            break;
        }
        for index in event.let_go {
            runs[index].end();
            spawning.slots.ended();
        }
        for index in event.died {
            runs[index].reap();
            spawning.slots.ended();
        }
        runs.retain(Run::is_kept);
        if event.asked {
            let received = socket::receive(socket.as_fd(), &mut buffer)?;
            if received.length == 0 {
                break;
            }
            if received.lacks_descriptors {
                // One request fails, and not everybody's runs with it.
                refuse_for_want_of_descriptors(&received.descriptors);
                continue;
            }
            runs.extend(spawning.serve(&buffer[..received.length], received.descriptors));
        } else if event.idle && spawning.has_preparations() {
            if spawning.slots.until_calm().is_zero() {
                spawning.prepare_next();
            }
        } else if event.idle {
            spawning.slots.forget_idle();
        }
    }
    for run in &runs {
        run.kill();
    }
    for mut run in runs {
        run.reap();
    }
    Ok(())
}

/// A wish to end becomes readable instead of ending the spawner where it stands: there is something to clean up.
pub(super) fn termination() -> io::Result<SignalFd> {
    let mut wish = SigSet::empty();
    wish.add(Signal::SIGTERM);
    wish.thread_block()?;
    Ok(SignalFd::with_flags(
        &wish,
        SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK,
    )?)
}

/// Clones the spawner.
pub(super) fn clone_single_threaded(flags: u64, birthplace: Option<BorrowedFd<'_>>) -> io::Result<Cloned> {
    // SAFETY: the spawner has one thread: it is a fresh process, started by exec or by a fork before any thread
    // existed, and nothing in this crate starts one.
    unsafe { clone_process(flags, birthplace) }
}
