//! What the server asks of the spawner, and who answers it.

use std::borrow::Cow;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::launch::{Descriptors, launch};
use super::protocol::{Answer, Orders, Request, StepFailure, decode, from_file, has_pid_namespace, tell};
use super::runs::Run;
use super::set_up::Spawning;
use crate::root::new_workspace;

impl Spawning {
    /// Does what a message asks for. A launch that succeeds is a run.
    pub fn serve(&mut self, message: &[u8], mut descriptors: Vec<OwnedFd>) -> Option<Run> {
        if descriptors.is_empty() {
            return None;
        }
        let from_file = match decode(message) {
            Ok(Request::LaunchFromFile { length }) if descriptors.len() > 1 => {
                from_file(&descriptors.remove(1), length).ok()
            }
            _ => None,
        };
        let message = from_file.as_deref().unwrap_or(message);
        match decode(message) {
            Ok(Request::Launch { steps, command }) => match self.known_steps.read(&steps) {
                Ok(steps) => {
                    let orders = Orders {
                        steps: Cow::Borrowed(&steps),
                        command,
                    };
                    return self.serve_launch(&orders, descriptors);
                }
                Err(error) => refuse("read the plan", &error, &descriptors[0]),
            },
            Ok(Request::Prepare { steps }) => {
                // What cannot be read is told when the launch comes.
                let steps = self.known_steps.read(&steps).ok();
                if let Some(steps) = steps.filter(|steps| has_pid_namespace(steps)) {
                    self.slots.ask_for(&steps);
                    if self.is_for_one() {
                        // The one run is about to come, and would have to wait for the same.
                        self.park_one();
                    }
                }
            }
            Ok(Request::KeepSlots { limit }) => self.slots.keep(limit),
            Ok(Request::CreateWorkspace { bytes, inodes }) => match new_workspace(bytes, inodes, self.facts.script) {
                Ok(workspace) => tell(&descriptors[0], &Answer::Workspace, &[workspace.as_fd()]),
                Err(error) => refuse("make a workspace", &error, &descriptors[0]),
            },
            Ok(Request::LaunchFromFile { .. } | Request::Begin(_)) => {
                refuse("read the request", &unreadable(), &descriptors[0]);
            }
            Err(error) => refuse("read the request", &error, &descriptors[0]),
        }
        None
    }

    fn serve_launch(&mut self, orders: &Orders<'_>, descriptors: Vec<OwnedFd>) -> Option<Run> {
        let answers = descriptors[0].try_clone().ok()?;
        let Some(descriptors) = Descriptors::from_message(descriptors, orders) else {
            refuse("count the descriptors", &unreadable(), &answers);
            return None;
        };
        self.launched();
        match launch(self, orders, descriptors) {
            Ok(launched) => Some(Run::begin(launched, orders)),
            Err(failure) => {
                tell(&answers, &Answer::Failed(failure), &[]);
                None
            }
        }
    }
}

/// Tells whoever asked that not all descriptors could be taken. Where not even the one for answers came, the asker
/// finds that out by the end of it.
pub(super) fn refuse_for_want_of_descriptors(received: &[OwnedFd]) {
    if let Some(answers) = received.first() {
        refuse(
            "take the descriptors of the request",
            &io::Error::from_raw_os_error(libc::EMFILE),
            answers,
        );
    }
}

fn unreadable() -> io::Error {
    io::Error::from_raw_os_error(libc::EBADMSG)
}

fn refuse(what: &str, error: &io::Error, to: &OwnedFd) {
    let failure = StepFailure {
        step: 0,
        what: what.to_owned(),
        errno: error.raw_os_error().unwrap_or(libc::EIO),
    };
    tell(to, &Answer::Failed(failure), &[]);
}
