//! The versions of HTTP where TLS is terminated, and the server side of each.

use std::sync::Arc;

use hyper_util::rt::TokioTimer;

use crate::run_executor::RunExecutor;
use crate::run_state::RunState;

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HttpVersion {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

impl HttpVersion {
    /// The name in TLS (RFC 7301).
    pub fn alpn(self) -> &'static [u8] {
        match self {
            Self::Http1 => b"http/1.1",
            Self::Http2 => b"h2",
        }
    }

    /// The version with this name.
    pub fn of_alpn(name: &[u8]) -> Option<Self> {
        [Self::Http1, Self::Http2]
            .into_iter()
            .find(|version| version.alpn() == name)
    }
}

/// The largest head of a request or an answer.
pub(crate) const MAX_HEAD_BYTES: usize = 64 << 10;

/// The most requests at the same time on one connection.
pub(crate) const MAX_STREAMS: u32 = 32;

/// What one side may send before the other has read it.
pub(crate) const WINDOW_BYTES: u32 = 256 << 10;

/// The server side of HTTP/1 towards a script. A script that sends a head slowly is disconnected.
pub(crate) fn http1_server(run: &RunState) -> hyper::server::conn::http1::Builder {
    let mut server = hyper::server::conn::http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(run.limits.first_bytes)
        .max_buf_size(MAX_HEAD_BYTES)
        .preserve_header_case(true)
        .half_close(true);
    server
}

/// The server side of HTTP/2 towards a script. It has no CONNECT, and so no WebSocket: clients use HTTP/1.1 for that.
pub(crate) fn http2_server(run: &Arc<RunState>) -> hyper::server::conn::http2::Builder<RunExecutor> {
    let mut server = hyper::server::conn::http2::Builder::new(RunExecutor(Arc::clone(run)));
    server
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .max_header_list_size(MAX_HEAD_BYTES as u32)
        .max_send_buf_size(64 << 10);
    server
}
