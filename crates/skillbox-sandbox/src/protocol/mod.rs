//! The protocol between the server, the spawner and the sandbox.
//!
//! The server sends a [`Request`] to the spawner. Each request carries a socket for its [`Answer`]s, which the spawner
//! shares with the child of a launch. The spawner sends a [`RunMessage`] to a parked sandbox; a sandbox that cannot park
//! sends its [`StepFailure`] back. One message is one packet of a Unix socket, with descriptors attached.

mod answer;
mod child_plan;
mod codec;
mod framing;
mod launch_fds;
mod request;
mod run_message;

pub(crate) use answer::{Answer, SandboxUsage, StepFailure};
pub(crate) use child_plan::ChildPlan;
pub(crate) use codec::{decode, encode};
pub(crate) use framing::{
    read_request_file, receive_answer, receive_parking_failure, send_answer, send_parking_failure, send_request,
};
pub(crate) use launch_fds::ReceivedLaunchFds;
pub(crate) use request::{EncodedSteps, Request};
pub(crate) use run_message::{RunMessage, RunMessageStep};
