//! The main loop of the spawner: it serves requests, reaps sandboxes, prepares for the next run when idle, and ends
//! when the server disconnects.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::cpu_affinity::CpuAffinity;
use super::events::{open_termination_signals, wait_for_events};
use super::preparation::{needs_preparation_for_next_run, prepare_for_single_run, prepare_next};
use super::requests::{refuse_incomplete_request, serve_request};
use super::run::Run;
use super::sanitize::sanitize_process;
use super::state::SpawnerState;
use crate::kernel::socket;
use crate::protocol::{Answer, Request, decode, send_answer};

/// Serves the requests on `socket` until the server closes it. `affinity` is the set of processors for the children, if
/// the spawner itself is limited to fewer.
pub(super) fn run_spawner(socket: OwnedFd, affinity: Option<CpuAffinity>) -> io::Result<()> {
    let socket = sanitize_process(socket)?;
    let mut buffer = vec![0; socket::MAX_MESSAGE_BYTES];
    let mut state = initialize(&socket, &mut buffer, affinity)?;
    prepare_for_single_run(&mut state);
    let signals = open_termination_signals()?;
    let mut runs: Vec<Run> = Vec::new();
    loop {
        let timeout = if needs_preparation_for_next_run(&state) {
            Some(state.parked_sandboxes.time_until_refill())
        } else {
            state.parked_sandboxes.time_until_idle()
        };
        let events = wait_for_events(&socket, &signals, &runs, timeout)?;
        if events.has_termination_signal {
            break;
        }
        for index in events.closed_runs {
            runs[index].end();
            state.parked_sandboxes.record_end_of_run();
        }
        for index in events.dead_runs {
            runs[index].reap();
            state.parked_sandboxes.record_end_of_run();
        }
        runs.retain(Run::is_needed);
        if events.has_request {
            let received = socket::receive(socket.as_fd(), &mut buffer)?;
            if received.length == 0 {
                break;
            }
            if received.lacks_descriptors {
                // Only this request fails; the runs continue.
                refuse_incomplete_request(&received.descriptors);
                continue;
            }
            runs.extend(serve_request(
                &mut state,
                &buffer[..received.length],
                received.descriptors,
            ));
        } else if events.is_timeout && needs_preparation_for_next_run(&state) {
            if state.parked_sandboxes.time_until_refill().is_zero() {
                prepare_next(&mut state);
            }
        } else if events.is_timeout {
            state.parked_sandboxes.discard_idle_kinds();
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
fn initialize(socket: &OwnedFd, buffer: &mut [u8], affinity: Option<CpuAffinity>) -> io::Result<SpawnerState> {
    let first = socket::receive(socket.as_fd(), buffer)?.require_complete()?;
    let protocol_error = || io::Error::from_raw_os_error(libc::EPROTO);
    let Ok(Request::Initialize(options)) = decode(&buffer[..first.length]) else {
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
