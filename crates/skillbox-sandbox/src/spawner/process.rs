//! The main loop of the spawner: take requests, launch, reap, prepare for the next run when idle, end with the server.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::cpu_affinity::CpuAffinity;
use super::event::{open_termination_signals, wait_for_event};
use super::preparation::{has_preparations, prepare_for_only_run, prepare_next};
use super::requests::{refuse_incomplete_request, serve_request};
use super::run::Run;
use super::sanitize::sanitize;
use super::state::SpawnerState;
use crate::kernel::socket;
use crate::protocol::{Answer, Request, decode, send_answer};

/// Runs the spawner behind `socket` until the other end closes. Its children may use the processors of `affinity`, where
/// the spawner itself was moved away from one.
pub(super) fn run_spawner(socket: OwnedFd, affinity: Option<CpuAffinity>) -> io::Result<()> {
    let socket = sanitize(socket)?;
    let mut buffer = vec![0; socket::MAX_MESSAGE_BYTES];
    let mut state = begin(&socket, &mut buffer, affinity)?;
    prepare_for_only_run(&mut state);
    let signals = open_termination_signals()?;
    let mut runs: Vec<Run> = Vec::new();
    loop {
        let timeout = if has_preparations(&state) {
            Some(state.slots.time_until_refill())
        } else {
            state.slots.time_until_idle()
        };
        let event = wait_for_event(&socket, &signals, &runs, timeout)?;
        if event.is_termination {
            break;
        }
        for index in event.closed_runs {
            runs[index].end();
            state.slots.record_end_of_run();
        }
        for index in event.dead_runs {
            runs[index].reap();
            state.slots.record_end_of_run();
        }
        runs.retain(Run::is_needed);
        if event.has_request {
            let received = socket::receive(socket.as_fd(), &mut buffer)?;
            if received.length == 0 {
                break;
            }
            if received.lacks_descriptors {
                // This request fails, and the other runs continue.
                refuse_incomplete_request(&received.descriptors);
                continue;
            }
            runs.extend(serve_request(
                &mut state,
                &buffer[..received.length],
                received.descriptors,
            ));
        } else if event.is_timeout && has_preparations(&state) {
            if state.slots.time_until_refill().is_zero() {
                prepare_next(&mut state);
            }
        } else if event.is_timeout {
            state.slots.forget_idle();
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

/// Serves the first request: creates the state and answers with the facts.
fn begin(socket: &OwnedFd, buffer: &mut [u8], affinity: Option<CpuAffinity>) -> io::Result<SpawnerState> {
    let first = socket::receive(socket.as_fd(), buffer)?.require_complete()?;
    let protocol_error = || io::Error::from_raw_os_error(libc::EPROTO);
    let Ok(Request::Begin(options)) = decode(&buffer[..first.length]) else {
        return Err(protocol_error());
    };
    let answers = first.descriptors.first().ok_or_else(protocol_error)?;
    match SpawnerState::create(&options, affinity) {
        Ok(state) => {
            let facts = Answer::Facts(Box::new(state.facts.clone()));
            send_answer(answers.as_fd(), &facts, &[])?;
            Ok(state)
        }
        Err(failure) => {
            let error = io::Error::from_raw_os_error(failure.errno);
            send_answer(answers.as_fd(), &Answer::Failed(failure), &[])?;
            Err(error)
        }
    }
}
