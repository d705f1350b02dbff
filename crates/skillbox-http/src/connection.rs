//! Serves one connection.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::net::sockopt;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::either::Either;

use crate::app::App;
use crate::limits::Limits;
use crate::listen::Connection;

/// A connection is closed if the client acknowledges neither data nor keepalive probes for this long.
const PEER_TIMEOUT: Duration = Duration::from_secs(60);

/// Serves one client until it disconnects, is too slow, or the server shuts down.
pub(crate) async fn serve_connection(guard: ConnectionGuard, router: Router, stream: Connection) {
    let app = &guard.app;
    if let Either::Left(tcp) = &stream
        && let Err(error) = configure_socket(tcp)
    {
        tracing::debug!("a connection closed before it could be used: {error}");
        return;
    }
    let mut settings = http1::Builder::new();
    settings
        .timer(TokioTimer::new())
        .header_read_timeout(app.limits.get().head_timeout)
        .max_headers(Limits::MAX_HEADERS)
        .max_buf_size(Limits::MAX_HEAD_BYTES);
    let connection = settings.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = app.drained.cancelled() => {
            // The current request is completed; no further one is accepted.
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!("a connection ended with an error: {error}");
    }
}

fn configure_socket(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let millis = u32::try_from(PEER_TIMEOUT.as_millis()).unwrap_or(u32::MAX);
    sockopt::set_tcp_user_timeout(stream, millis)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, PEER_TIMEOUT / 2)?;
    sockopt::set_tcp_keepintvl(stream, PEER_TIMEOUT / 6)?;
    sockopt::set_tcp_keepcnt(stream, 3)?;
    Ok(())
}

/// Holds the permit of a connection and counts it in the metrics.
pub(crate) struct ConnectionGuard {
    app: Arc<App>,
    _permit: OwnedSemaphorePermit,
}

impl ConnectionGuard {
    /// Counts a connection until the guard is dropped.
    pub(crate) fn new(app: Arc<App>, permit: OwnedSemaphorePermit) -> Self {
        app.metrics.connections.fetch_add(1, Ordering::Relaxed);
        Self { app, _permit: permit }
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.app.metrics.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
