//! The protocol between the server, the spawner and the sandbox.
//!
//! The server is the process that started the spawner. It sends a [`Request`] to the spawner, with an answer socket for
//! the [`Answer`]s. For a launch, the spawner shares the answer socket with the child. The spawner sends a
//! [`RunMessage`] to a parked sandbox; a sandbox that cannot be parked sends a [`StepFailure`] back. Each message is
//! one packet of a Unix socket (`SOCK_SEQPACKET`), with descriptors attached.

mod answer;
mod child_plan;
mod codec;
mod decode_any;
mod launch_fds;
mod request;
mod run_message;
mod transport;

pub(crate) use answer::{Answer, SandboxUsage, StepFailure};
pub(crate) use child_plan::ChildPlan;
pub(crate) use codec::{decode, encode};
#[doc(hidden)]
pub use decode_any::decode_any_message;
pub(crate) use launch_fds::ReceivedLaunchFds;
pub(crate) use request::{EncodedSteps, Request};
pub(crate) use run_message::{RunMessage, RunMessageStep};
pub(crate) use transport::{
    read_request_from_memfd, receive_answer, receive_parking_failure, send_answer, send_parking_failure, send_request,
};
