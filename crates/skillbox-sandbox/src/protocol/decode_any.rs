//! Decodes any bytes, for the fuzz target of the protocol.

use super::answer::{Answer, StepFailure};
use super::codec::decode;
use super::request::Request;
use super::run_message::RunMessage;

/// Decodes bytes as each kind of message, for the fuzz target: nothing may panic.
pub fn decode_any_message(bytes: &[u8]) {
    if let Ok(Request::Launch { steps, .. } | Request::Park { steps }) = decode::<Request<'_>>(bytes) {
        let _steps = steps.decode();
    }
    let _answer = decode::<Answer>(bytes);
    let _failure = decode::<StepFailure>(bytes);
    let _run = decode::<RunMessage<'_>>(bytes);
}
