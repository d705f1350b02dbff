//! Serves the requests of the server.

use std::borrow::Cow;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::launch::launch;
use super::parking::park_next_sandbox;
use super::run::Run;
use super::state::SpawnerState;
use crate::plan::has_pid_namespace;
use crate::protocol::{
    Answer, ChildPlan, EncodedSteps, ReceivedLaunchFds, Request, StepFailure, decode, read_request_from_memfd,
    send_answer,
};
use crate::root::create_workspace_tmpfs;

/// Serves one request. A successful launch returns a run.
pub(super) fn serve_request(state: &mut SpawnerState, message: &[u8], mut descriptors: Vec<OwnedFd>) -> Option<Run> {
    if descriptors.is_empty() {
        // Without an answer socket the failure cannot be reported.
        return None;
    }
    let file_message = match decode(message) {
        Ok(Request::InMemfd { length }) if descriptors.len() > 1 => {
            match read_request_from_memfd(&descriptors.remove(1), length) {
                Ok(message) => Some(message),
                Err(error) => {
                    refuse("read the request file", &error, &descriptors[0]);
                    return None;
                }
            }
        }
        _ => None,
    };
    let answers = &descriptors[0];
    match decode(file_message.as_deref().unwrap_or(message)) {
        Ok(Request::Launch { steps, command }) => match state.step_cache.decode(&steps) {
            Ok(steps) => {
                let plan = ChildPlan {
                    steps: Cow::Borrowed(&steps),
                    command,
                };
                return serve_launch(state, &plan, descriptors);
            }
            Err(error) => refuse("read the plan", &error, answers),
        },
        Ok(Request::Park { steps }) => serve_park(state, &steps),
        Ok(Request::SetMaxParked { limit }) => state.parked_sandboxes.set_limit(limit),
        Ok(Request::CreateWorkspace { bytes, inodes }) => {
            let created = create_workspace_tmpfs(bytes, inodes, state.facts.script_ids)
                .and_then(|workspace| send_answer(answers.as_fd(), &Answer::WorkspaceCreated, &[workspace.as_fd()]));
            if let Err(error) = created {
                refuse("create a workspace", &error, answers);
            }
        }
        Ok(Request::InMemfd { .. } | Request::Initialize(_)) => refuse("read the request", &bad_message(), answers),
        Err(error) => refuse("read the request", &error, answers),
    }
    None
}

fn serve_park(state: &mut SpawnerState, steps: &EncodedSteps<'_>) {
    match state.step_cache.decode(steps) {
        Ok(steps) if has_pid_namespace(&steps) => {
            state.parked_sandboxes.request(&steps);
            if state.is_single_run {
                // The run follows at once, and would otherwise have to wait for the same work.
                park_next_sandbox(state);
            }
        }
        // The reaper of a run without a pid namespace watches the server, and a parked sandbox has no connection to it.
        Ok(_) => {}
        Err(error) => state.parking_failure = Some(StepFailure::outside_steps("read the plan", &error)),
    }
}

fn serve_launch(state: &mut SpawnerState, plan: &ChildPlan<'_>, descriptors: Vec<OwnedFd>) -> Option<Run> {
    let answers = match descriptors[0].try_clone() {
        Ok(answers) => answers,
        Err(error) => {
            refuse("copy the answer socket", &error, &descriptors[0]);
            return None;
        }
    };
    let launched = ReceivedLaunchFds::from_message(descriptors, plan)
        .map_err(|error| StepFailure::outside_steps("count the descriptors", &error))
        .and_then(|fds| {
            state.has_launched = true;
            launch(state, plan, fds)
        });
    if let Some(failure) = state.parking_failure.take() {
        try_send(&answers, &Answer::ParkingFailed(failure));
    }
    match launched {
        Ok(launched) => Some(Run::start(launched, plan)),
        Err(failure) => {
            try_send(&answers, &Answer::Failed(failure));
            None
        }
    }
}

/// Refuses a request whose descriptors were not all received. If even the answer socket is missing, the server notices
/// that it was closed.
pub(super) fn refuse_incomplete_request(descriptors: &[OwnedFd]) {
    if let Some(answers) = descriptors.first() {
        let error = io::Error::from_raw_os_error(libc::EMFILE);
        refuse("take the descriptors of the request", &error, answers);
    }
}

fn bad_message() -> io::Error {
    io::Error::from_raw_os_error(libc::EBADMSG)
}

fn refuse(what: &str, error: &io::Error, answers: &OwnedFd) {
    try_send(answers, &Answer::Failed(StepFailure::outside_steps(what, error)));
}

/// Sends an answer that reports a failure. If that fails too, the server notices that the answer socket was closed.
fn try_send(answers: &OwnedFd, answer: &Answer) {
    let _ = send_answer(answers.as_fd(), answer, &[]);
}
