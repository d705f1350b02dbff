//! One connection, from its acceptance to its end.

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

use crate::app::App;
use crate::limits::Limits;

/// A client that takes nothing of what it is sent, or is silently gone, loses its connection after so long.
const DEAD_PEER: Duration = Duration::from_secs(60);

/// Speaks with one client until it leaves, is too slow, or the server is to end.
pub(crate) async fn talk(guest: Guest, router: Router, stream: TcpStream) {
    let app = &guest.app;
    if let Err(error) = prepare(&stream) {
        tracing::debug!("a connection was gone before it could be used: {error}");
        return;
    }
    let mut settings = http1::Builder::new();
    settings
        .timer(TokioTimer::new())
        .header_read_timeout(app.limits.head_time)
        .max_headers(Limits::HEADERS)
        .max_buf_size(Limits::HEAD);
    let connection = settings.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = app.stopping.cancelled() => {
            // What was asked for is still answered, and nothing after it.
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!("a connection broke off: {error}");
    }
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let millis = u32::try_from(DEAD_PEER.as_millis()).unwrap_or(u32::MAX);
    sockopt::set_tcp_user_timeout(stream, millis)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, DEAD_PEER / 2)?;
    sockopt::set_tcp_keepintvl(stream, DEAD_PEER / 6)?;
    sockopt::set_tcp_keepcnt(stream, 3)?;
    Ok(())
}

/// A client that was let in: it has its place, and is counted, until it leaves.
pub(crate) struct Guest {
    app: Arc<App>,
    _place: OwnedSemaphorePermit,
}

impl Guest {
    /// From the moment of its acceptance on, however long it takes until somebody speaks with it.
    pub(crate) fn new(app: Arc<App>, place: OwnedSemaphorePermit) -> Self {
        app.metrics.connections.fetch_add(1, Ordering::Relaxed);
        Self { app, _place: place }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.app.metrics.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
