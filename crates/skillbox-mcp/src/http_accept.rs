//! Accepts HTTP connections, with limits on their number, request sizes and times.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::process::{Resource, getrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Maximum number of open connections; further ones wait in the kernel's queue.
const MAX_CONNECTIONS: u64 = 12_000;
/// Time for a client to send the head of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(15);
/// Time for a client to send the body of a request.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum size of a request body: enough for a file of 8 MiB as base64.
pub(crate) const MAX_REQUEST_BYTES: usize = 12 << 20;
/// The rest of a body that is too large is read and discarded up to this size, because a client does not read the response
/// if its upload is interrupted.
const MAX_DISCARDED_BYTES: usize = 8 * MAX_REQUEST_BYTES;
/// Pause after the system refused a connection, usually for lack of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Accepts connections until the server stops, then waits for the requests in progress.
pub(crate) async fn serve_connections(listener: TcpListener, router: Router, stopped: &CancellationToken) {
    let permits = Arc::new(Semaphore::new(max_connections()));
    let connections = TaskTracker::new();
    let accept = async || {
        let permit = permits.clone().acquire_owned().await.ok()?;
        Some((listener.accept().await, permit))
    };
    while let Some(Some((accepted, permit))) = stopped.run_until_cancelled(accept()).await {
        match accepted {
            Ok((stream, _)) => {
                connections.spawn(serve_connection(stream, router.clone(), permit, stopped.clone()));
            }
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
    connections.close();
    connections.wait().await;
}

/// At most three quarters of the file descriptors of this process; runs need the others.
fn max_connections() -> usize {
    let open_files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(MAX_CONNECTIONS.min(open_files / 4 * 3)).unwrap_or(usize::MAX)
}

async fn serve_connection(stream: TcpStream, router: Router, permit: OwnedSemaphorePermit, stopped: CancellationToken) {
    let _permit = permit;
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("a connection closed before its first request: {error}");
        return;
    }
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopped.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!("a connection was interrupted: {error}");
    }
}

/// Middleware: reads the whole body of a request, within the limits of size and time.
pub(crate) async fn buffer_body(request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    match tokio::time::timeout(BODY_TIMEOUT, read_body(body)).await {
        Ok(Ok(body)) => next.run(Request::from_parts(head, Body::from(body))).await,
        Ok(Err(refusal)) => refusal.into_response(),
        Err(_) => (StatusCode::REQUEST_TIMEOUT, "the request took too long\n").into_response(),
    }
}

async fn read_body(body: Body) -> Result<Vec<u8>, (StatusCode, &'static str)> {
    let mut parts = body.into_data_stream();
    let (mut bytes, mut size) = (Vec::new(), 0);
    while let Some(part) = parts.next().await {
        let part = part.map_err(|_| (StatusCode::BAD_REQUEST, "the request was interrupted\n"))?;
        size += part.len();
        if size <= MAX_REQUEST_BYTES {
            bytes.extend_from_slice(&part);
        } else if size > MAX_DISCARDED_BYTES {
            break;
        }
    }
    if size > MAX_REQUEST_BYTES {
        return Err((StatusCode::PAYLOAD_TOO_LARGE, "the request is too large\n"));
    }
    Ok(bytes)
}
