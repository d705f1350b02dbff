//! Detects clients of the older protocol revisions that have disconnected.
//!
//! A protocol session outlives its connections, and a killed client does not end its session. The server only notices that
//! a response or an event stream is interrupted. A client that is still alive reconnects within seconds.

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

pub(crate) const SESSION_ID_HEADER: &str = "mcp-session-id";
/// A client that does not reconnect within this time has disconnected for good. Clients retry after a second.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A response stream is buffered for at most this long before it is sent.
const BUFFER_TIMEOUT: Duration = Duration::from_millis(10);

/// The open streams of every protocol session, by the session's id.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionTracker(Arc<Mutex<HashMap<String, SessionStreams>>>);

#[derive(Debug, Default)]
struct SessionStreams {
    open: usize,
    interrupted_at: Option<Instant>,
}

impl ConnectionTracker {
    /// Middleware: tracks one request of a session until the end of its response.
    pub(crate) async fn track(State(self_): State<Self>, request: Request, next: Next) -> Response {
        let Some(id) = request.headers().get(SESSION_ID_HEADER).and_then(|id| id.to_str().ok()) else {
            return next.run(request).await;
        };
        let ends_session = request.method() == Method::DELETE;
        let is_call = request.method() == Method::POST;
        let stream = self_.open_stream(id);
        let mut response = next.run(request).await;
        if ends_session && response.status() == StatusCode::ACCEPTED {
            // Clients of the older revisions treat any other status than 204 as a failure.
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
        let mut sessions = lock(&self.0);
        let streams = sessions.entry(id.to_owned()).or_default();
        streams.open += 1;
        streams.interrupted_at = None;
        OpenStream {
            tracker: self.clone(),
            id: id.to_owned(),
            is_complete: false,
        }
    }

    /// Whether a client reads a response or an event stream of the session.
    pub(crate) fn has_open_stream(&self, id: &str) -> bool {
        lock(&self.0).get(id).is_some_and(|streams| streams.open > 0)
    }

    /// Removes and returns the sessions whose client has disconnected.
    pub(crate) fn take_abandoned(&self) -> Vec<String> {
        let mut abandoned = Vec::new();
        lock(&self.0).retain(|id, streams| {
            let is_abandoned = streams.open == 0
                && streams
                    .interrupted_at
                    .is_some_and(|at| at.elapsed() > RECONNECT_TIMEOUT);
            if is_abandoned {
                abandoned.push(id.clone());
            }
            !is_abandoned
        });
        abandoned
    }
}

/// One response or event stream, until it is complete or interrupted.
struct OpenStream {
    tracker: ConnectionTracker,
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
        lock(&self.tracker.0).remove(&self.id);
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut sessions = lock(&self.tracker.0);
        let Some(streams) = sessions.get_mut(&self.id) else {
            return;
        };
        streams.open = streams.open.saturating_sub(1);
        if !self.is_complete {
            streams.interrupted_at = Some(Instant::now());
        } else if streams.open == 0 && streams.interrupted_at.is_none() {
            // A client without open streams is idle, not disconnected.
            sessions.remove(&self.id);
        }
    }
}

/// Buffers a stream that ends soon, so that its head and body reach the client in one packet. The client then wakes up
/// once instead of three times.
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
