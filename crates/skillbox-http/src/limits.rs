//! What the server takes on at most.

use std::time::Duration;

/// Every bound of the server, decided by the host.
#[derive(Clone, Debug)]
pub struct Limits {
    /// So many runs and tool calls are worked on at once.
    pub runs: usize,
    /// So many more wait for their turn; what comes then is told to come back later.
    pub queued: usize,
    /// So many connections are open at once; more wait to be let in.
    pub connections: usize,
    /// Bytes of a JSON body.
    pub body: usize,
    /// Bytes of a file that is uploaded.
    pub upload: u64,
    /// How long a client may take to send a request's head, and may be silent between two requests.
    pub head_time: Duration,
    /// How long runs may go on once the server is to end; then they are killed.
    pub grace: Duration,
    /// Sessions that nobody used for so long are removed.
    pub session_idle: Duration,
}

impl Limits {
    /// How long a client may take to send a body, or the next part of a file.
    pub(crate) const BODY_TIME: Duration = Duration::from_secs(30);
    /// Files that are uploaded at once.
    pub(crate) const UPLOADS: usize = 16;
    /// Headers of a request.
    pub(crate) const HEADERS: usize = 64;
    /// Bytes of a request's head.
    pub(crate) const HEAD: usize = 32 << 10;
    /// Sessions of one tenant.
    pub(crate) const SESSIONS: usize = 10_000;
    /// How long a request may wait for a run, in seconds.
    pub(crate) const LONGEST_WAIT: f64 = 3_600.0;
    /// How long killed runs may take to be dead.
    pub(crate) const LAST_RUNS: Duration = Duration::from_secs(10);
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
