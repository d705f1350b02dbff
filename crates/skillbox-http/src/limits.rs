//! The limits of the server.

use std::time::Duration;

/// The limits that the host configures.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Concurrent runs and tool calls.
    pub runs: usize,
    /// Runs and tool calls that wait in the queue; further ones are rejected with `busy`.
    pub queued: usize,
    /// Open connections; further ones wait to be accepted.
    pub connections: usize,
    /// Bytes of a JSON body.
    pub body: usize,
    /// Bytes of an uploaded file.
    pub upload: u64,
    /// How long a client may take to send the head of a request, and may be idle between two requests.
    pub head_time: Duration,
    /// How long runs may continue after a shutdown signal, before they are killed.
    pub grace: Duration,
    /// How long a session may be unused before it is removed.
    pub session_idle: Duration,
}

impl Limits {
    /// How long a client may take to send a body, or the next part of a file.
    pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(30);
    /// Concurrent uploads.
    pub(crate) const MAX_UPLOADS: usize = 16;
    /// Headers of a request.
    pub(crate) const MAX_HEADERS: usize = 64;
    /// Bytes of the head of a request.
    pub(crate) const MAX_HEAD_BYTES: usize = 32 << 10;
    /// Sessions of one tenant.
    pub(crate) const MAX_SESSIONS: usize = 10_000;
    /// How long a request may wait for a run, in seconds.
    pub(crate) const MAX_WAIT_SECONDS: f64 = 3_600.0;
    /// How long killed runs may take to end.
    pub(crate) const KILL_TIMEOUT: Duration = Duration::from_secs(10);
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            runs: 32,
            queued: 256,
            connections: 8_192,
            body: 8 << 20,
            upload: 1 << 30,
            head_time: Duration::from_secs(30),
            grace: Duration::from_secs(10),
            session_idle: Duration::from_secs(7 * 24 * 3600),
        }
    }
}
