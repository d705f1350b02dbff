//! The limits of the server.

use std::time::Duration;

/// The limits that the operator configures.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Concurrent runs and tool calls.
    pub max_runs: usize,
    /// Runs and tool calls that wait in the queue; further ones are rejected with `busy`.
    pub max_queued: usize,
    /// Open connections; further ones wait to be accepted.
    pub max_connections: usize,
    /// Bytes of a JSON body.
    pub max_body_bytes: usize,
    /// Bytes of memory for all request bodies, received and parsed.
    pub max_buffered_bytes: usize,
    /// Bytes of an uploaded file.
    pub max_upload_bytes: u64,
    /// How long a client may take to send the head of a request, and how long it may be idle between two requests.
    pub head_timeout: Duration,
    /// How long runs may continue after a shutdown signal, before they are killed.
    pub grace_period: Duration,
    /// How long a session may be unused before it is removed.
    pub session_idle_timeout: Duration,
    /// How long the results and the files of runs are kept.
    pub results_ttl: Duration,
}

impl Limits {
    /// How long a client may take to send a JSON body, or the next part of an upload.
    pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(30);
    /// Concurrent uploads.
    pub(crate) const MAX_UPLOADS: usize = 16;
    /// Concurrent uploads of one tenant.
    pub(crate) const MAX_TENANT_UPLOADS: usize = 8;
    /// Bytes per second that an upload must reach on average, after a first `BODY_TIMEOUT`.
    pub(crate) const MIN_UPLOAD_RATE: u64 = 16 << 10;
    /// How long a request waits for memory before it is refused with `busy`.
    pub(crate) const BUDGET_TIMEOUT: Duration = Duration::from_secs(5);
    /// Values in a JSON body: each takes memory that the size of the body does not show.
    pub(crate) const MAX_JSON_VALUES: usize = 100_000;
    /// Headers of a request.
    pub(crate) const MAX_HEADERS: usize = 64;
    /// Bytes of the head of a request.
    pub(crate) const MAX_HEAD_BYTES: usize = 32 << 10;
    /// Sessions of one tenant.
    pub(crate) const MAX_SESSIONS: usize = 10_000;
    /// How long a request may wait for the result of a run, in seconds.
    pub(crate) const MAX_WAIT_SECONDS: f64 = 3_600.0;
    /// How long killed runs may take to end.
    pub(crate) const KILL_TIMEOUT: Duration = Duration::from_secs(10);
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_runs: 32,
            max_queued: 256,
            max_connections: 8_192,
            max_body_bytes: 8 << 20,
            max_buffered_bytes: 64 << 20,
            max_upload_bytes: 1 << 30,
            head_timeout: Duration::from_secs(30),
            grace_period: Duration::from_secs(10),
            session_idle_timeout: Duration::from_secs(7 * 24 * 3600),
            results_ttl: Duration::from_secs(15 * 60),
        }
    }
}
