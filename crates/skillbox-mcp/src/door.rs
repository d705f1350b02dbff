//! Lets clients in over HTTP: so many at once, and none that keeps the others waiting.

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

/// So many connections are open at once; more wait until the kernel has one of them.
const MAX_CONNECTIONS: u64 = 12_000;
/// A client that does not say for so long what it wants loses its connection; it may come again.
const HEAD_TIME: Duration = Duration::from_secs(15);
/// So long the rest of a request may take.
const BODY_TIME: Duration = Duration::from_secs(60);
/// A request may have so many bytes: a file of 8 MiB as base64, and some more.
pub(crate) const MAX_REQUEST: usize = 12 << 20;
/// Of one that is larger the rest is heard out, within reason: who is interrupted does not hear the answer.
const MAX_HEARD: usize = 8 * MAX_REQUEST;
/// How long nobody is let in once the system has nothing left for another connection.
const BREATH: Duration = Duration::from_millis(100);

/// Serves everybody who comes until the server is to end, and then what was asked for.
pub(crate) async fn serve(listener: TcpListener, router: Router, stopped: &CancellationToken) {
    let places = Arc::new(Semaphore::new(places()));
    let connections = TaskTracker::new();
    let accept = async || {
        let place = places.clone().acquire_owned().await.ok()?;
        Some((listener.accept().await, place))
    };
    while let Some(Some((accepted, place))) = stopped.run_until_cancelled(accept()).await {
        match accepted {
            Ok((stream, _)) => {
                connections.spawn(talk(stream, router.clone(), place, stopped.clone()));
            }
            Err(error) => {
                tracing::warn!("a client cannot be let in: {error}");
                tokio::time::sleep(BREATH).await;
            }
        }
    }
    connections.close();
    connections.wait().await;
}

/// Not all that this process may have open: runs need theirs.
fn places() -> usize {
    let open_files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(MAX_CONNECTIONS.min(open_files / 4 * 3)).unwrap_or(usize::MAX)
}

async fn talk(stream: TcpStream, router: Router, place: OwnedSemaphorePermit, stopped: CancellationToken) {
    let _place = place;
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("a connection was gone before it could be used: {error}");
        return;
    }
    let mut settings = http1::Builder::new();
    settings.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME);
    let connection = settings.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopped.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!("a connection broke off: {error}");
    }
}

/// Takes a request in as a whole, or says why not.
pub(crate) async fn take_whole(request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    match tokio::time::timeout(BODY_TIME, whole(body)).await {
        Ok(Ok(body)) => next.run(Request::from_parts(head, Body::from(body))).await,
        Ok(Err(refusal)) => refusal.into_response(),
        Err(_) => (StatusCode::REQUEST_TIMEOUT, "the request has taken too long\n").into_response(),
    }
}

async fn whole(body: Body) -> Result<Vec<u8>, (StatusCode, &'static str)> {
    let mut parts = body.into_data_stream();
    let (mut whole, mut size) = (Vec::new(), 0);
    while let Some(part) = parts.next().await {
        let part = part.map_err(|_| (StatusCode::BAD_REQUEST, "the request was broken off\n"))?;
        size += part.len();
        if size <= MAX_REQUEST {
            whole.extend_from_slice(&part);
        } else if size > MAX_HEARD {
            break;
        }
    }
    if size > MAX_REQUEST {
        return Err((StatusCode::PAYLOAD_TOO_LARGE, "the request is too large\n"));
    }
    Ok(whole)
}
