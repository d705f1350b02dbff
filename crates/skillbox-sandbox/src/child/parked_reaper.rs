//! Pid 1 of a parked sandbox: it clones pid 2, which will become the command, confines itself, and reaps.
//!
//! A run in a parked sandbox only adds its mounts and executes its command: both processes exist, and pid 2 has joined
//! its control groups. The two share their descriptor table until pid 2 executes the command, so the answer socket that
//! pid 2 receives is open in pid 1 as well.
#![expect(
    unsafe_code,
    reason = "a clone is safe only in a process of one thread, which this one is"
)]

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::confine::confine;
use super::exit::exit;
use super::fds::ChildFds;
use super::op_error::ClassifiedFailure;
use super::parked_command::wait_for_run;
use super::parking_failure::abandon_parking;
use super::prepare::prepare;
use super::reaper::reap_until_command_ends;
use super::run::report;
use crate::kernel::clone::{CloneResult, clone_process};
use crate::plan::{Step, confine_steps};
use crate::protocol::{Answer, StepFailure};
use crate::signals::block_child_signals;

/// Prepares a sandbox as its pid 1, and reaps until the run that is sent through `run_socket` has ended. Does not
/// return.
pub(crate) fn park(steps: &[Step], fds: ChildFds, run_socket: OwnedFd) -> ! {
    let prepared = prepare(steps, &fds).unwrap_or_else(|failure| abandon_parking(&run_socket, &failure));
    let failed = |what: &'static str| {
        let run_socket = &run_socket;
        move |error: io::Error| -> ! { abandon_parking(run_socket, &StepFailure::outside_steps(what, &error)) }
    };
    fds.close_unrelated_fds(run_socket.as_fd())
        .unwrap_or_else(|error| failed("close descriptors")(error));
    let (confined, confined_sender) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
        .unwrap_or_else(|errno| failed("create a pipe")(errno.into()));
    // SAFETY: this process is a clone of the spawner, which has one thread, and has started no other.
    let cloned = unsafe { clone_process(libc::CLONE_FILES as u64, None) };
    match cloned.unwrap_or_else(|error| failed("clone pid 2")(error)) {
        CloneResult::Child => wait_for_run(steps, prepared, fds, run_socket, &confined),
        CloneResult::Parent { pid, pidfd } => {
            drop(pidfd);
            confine_reaper(steps).unwrap_or_else(|failure| abandon_parking(&run_socket, &failure));
            rustix::io::write(&confined_sender, b"!").unwrap_or_else(|errno| failed("wake pid 2")(errno.into()));
            let status = reap_until_command_ends(pid, None);
            // Pid 2 has replaced the run socket by the answer socket of the run, under the same number.
            if let Some(status) = status {
                report(&run_socket, &Answer::CommandEnded { status });
            }
            exit(0)
        }
    }
}

/// Applies the confining steps to pid 1, in the order of the plan. Pid 2 applies them to itself, and closes the
/// descriptors for both.
fn confine_reaper(steps: &[Step]) -> Result<(), StepFailure> {
    block_child_signals().map_err(|error| StepFailure::outside_steps("block SIGCHLD", &error))?;
    for (step, op) in confine_steps(steps) {
        match confine(op).map_err(|error| error.classify(step)) {
            // A preferred step fails in pid 2 in the same way, and pid 2 reports it with the run.
            Ok(()) | Err(ClassifiedFailure::LaunchContinues(_)) => {}
            Err(ClassifiedFailure::LaunchEnds(failure)) => return Err(failure),
        }
    }
    Ok(())
}
