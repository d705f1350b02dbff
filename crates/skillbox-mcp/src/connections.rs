//! Detects clients of the older protocol revisions that have disconnected.
//!
//! A protocol session outlives its connections, and a client that is killed does not end it. The server only sees a
//! response or an event stream break off. A client that is still alive reconnects at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::{StreamExt, stream};

use crate::lock::lock;

const SESSION_ID: &str = "mcp-session-id";
/// A client that does not reconnect for this long has ended. Clients retry after a second.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A response stream is buffered for this long before it is sent.
const BUFFER_TIMEOUT: Duration = Duration::from_millis(10);

/// The connections of every protocol session, by its id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connections(Arc<Mutex<HashMap<String, SessionStreams>>>);

#[derive(Debug, Default)]
struct SessionStreams {
    open: usize,
    broken_at: Option<Instant>,
}

impl Connections {
    /// Middleware: tracks one request of a session until the end of its response.
    pub(crate) async fn track(State(self_): State<Self>, request: Request, next: Next) -> Response {
        let Some(id) = request.headers().get(SESSION_ID).and_then(|id| id.to_str().ok()) else {
            return next.run(request).await;
        };
        let is_end = request.method() == Method::DELETE;
        let is_call = request.method() == Method::POST;
        let stream = self_.open_stream(id);
        let mut response = next.run(request).await;
        if is_end && response.status() == StatusCode::ACCEPTED {
            // Clients of the older revisions treat every other status as a failure.
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        if response.status() == StatusCode::NOT_FOUND {
            stream.forget();
            return response;
        }
        if !is_stream(&response) {
            stream.complete();
            return response;
        }
        if !is_call {
            return response.map(|body| track_stream(body, stream));
        }
        let (head, body) = response.into_parts();
        Response::from_parts(head, buffer_short_stream(track_stream(body, stream)).await)
    }

    fn open_stream(&self, id: &str) -> OpenStream {
        let mut connections = lock(&self.0);
        let streams = connections.entry(id.to_owned()).or_default();
        streams.open += 1;
        streams.broken_at = None;
        OpenStream {
            connections: self.clone(),
            id: id.to_owned(),
            is_complete: false,
        }
    }

    /// Removes and returns the sessions whose client has ended.
    pub(crate) fn take_abandoned(&self) -> Vec<String> {
        let mut abandoned = Vec::new();
        lock(&self.0).retain(|id, streams| {
            let is_abandoned =
                streams.open == 0 && streams.broken_at.is_some_and(|at| at.elapsed() > RECONNECT_TIMEOUT);
            if is_abandoned {
                abandoned.push(id.clone());
            }
            !is_abandoned
        });
        abandoned
    }
}

/// One response or event stream, until it is complete or breaks off.
struct OpenStream {
    connections: Connections,
    id: String,
    is_complete: bool,
}

impl OpenStream {
    /// The whole stream was sent.
    fn complete(mut self) {
        self.is_complete = true;
    }

    /// The session does not exist.
    fn forget(mut self) {
        self.is_complete = true;
        lock(&self.connections.0).remove(&self.id);
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut connections = lock(&self.connections.0);
        let Some(streams) = connections.get_mut(&self.id) else {
            return;
        };
        streams.open = streams.open.saturating_sub(1);
        if !self.is_complete {
            streams.broken_at = Some(Instant::now());
        } else if streams.open == 0 && streams.broken_at.is_none() {
            // A client without open streams is idle, not disconnected.
            connections.remove(&self.id);
        }
    }
}

/// Buffers a stream that ends soon, so that its head and body reach the client in one packet: it wakes up once, not three
/// times.
async fn buffer_short_stream(body: Body) -> Body {
    let mut parts = body.into_data_stream();
    let mut buffered = Vec::new();
    let ended = tokio::time::timeout(BUFFER_TIMEOUT, async {
        while let Some(part) = parts.next().await {
            buffered.extend_from_slice(&part?);
        }
        Ok::<_, axum::Error>(())
    });
    match ended.await {
        Ok(Ok(())) => Body::from(buffered),
        Ok(Err(error)) => Body::from_stream(stream::iter([Ok(Bytes::from(buffered)), Err(error)])),
        Err(_) => Body::from_stream(stream::iter([Ok(Bytes::from(buffered))]).chain(parts)),
    }
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

fn track_stream(body: Body, stream: OpenStream) -> Body {
    let parts = stream::unfold((body.into_data_stream(), stream), |(mut parts, stream)| async move {
        match parts.next().await {
            Some(part) => Some((part, (parts, stream))),
            None => {
                stream.complete();
                None
            }
        }
    });
    Body::from_stream(parts)
}
