//! Which sessions of the older revisions still have somebody at the other end.
//!
//! Such a session outlives its connections, and a client that is killed does not say so. What is seen is an answer or
//! a stream of news that was broken off: a client that still lives comes back at once.

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

use crate::host::locked;

const SESSION_ID: &str = "mcp-session-id";
/// Who has broken off and is not back after so long is gone. Clients try again after a second.
const COMES_BACK: Duration = Duration::from_secs(10);

/// An answer waits so long for its end before it begins to be sent.
const SOON: Duration = Duration::from_millis(10);

/// The connections of every session, by the name that the protocol gives it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connections(Arc<Mutex<HashMap<String, Connected>>>);

#[derive(Debug, Default)]
struct Connected {
    streams: usize,
    broken_off: Option<Instant>,
}

impl Connections {
    /// Watches one request of a session, to the end of its answer.
    pub(crate) async fn watch(State(self_): State<Self>, request: Request, next: Next) -> Response {
        let Some(id) = request.headers().get(SESSION_ID).and_then(|id| id.to_str().ok()) else {
            return next.run(request).await;
        };
        let is_end = request.method() == Method::DELETE;
        let is_call = request.method() == Method::POST;
        let stream = self_.opened(id);
        let mut response = next.run(request).await;
        if is_end && response.status() == StatusCode::ACCEPTED {
            // Clients of the older revisions take this for an end, and anything else for a failure.
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
            return response.map(|body| watched(body, stream));
        }
        let (head, body) = response.into_parts();
        Response::from_parts(head, in_one_piece(watched(body, stream)).await)
    }

    fn opened(&self, id: &str) -> OpenStream {
        let mut connections = locked(&self.0);
        let connected = connections.entry(id.to_owned()).or_default();
        connected.streams += 1;
        connected.broken_off = None;
        OpenStream {
            connections: self.clone(),
            id: id.to_owned(),
            is_complete: false,
        }
    }

    /// The sessions whose client is gone, each told once.
    pub(crate) fn deserted(&self) -> Vec<String> {
        let mut deserted = Vec::new();
        locked(&self.0).retain(|id, connected| {
            let is_deserted =
                connected.streams == 0 && connected.broken_off.is_some_and(|at| at.elapsed() > COMES_BACK);
            if is_deserted {
                deserted.push(id.clone());
            }
            !is_deserted
        });
        deserted
    }
}

/// One answer, or one stream of news, until it is complete or broken off.
struct OpenStream {
    connections: Connections,
    id: String,
    is_complete: bool,
}

impl OpenStream {
    /// Everything was sent.
    fn complete(mut self) {
        self.is_complete = true;
    }

    /// There is no such session.
    fn forget(mut self) {
        self.is_complete = true;
        locked(&self.connections.0).remove(&self.id);
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut connections = locked(&self.connections.0);
        let Some(connected) = connections.get_mut(&self.id) else {
            return;
        };
        connected.streams = connected.streams.saturating_sub(1);
        if !self.is_complete {
            connected.broken_off = Some(Instant::now());
        } else if connected.streams == 0 && connected.broken_off.is_none() {
            // Nothing is known against a client that is merely quiet.
            connections.remove(&self.id);
        }
    }
}

/// A stream that ends soon goes out as a whole, with its head: the client is woken once and not three times.
async fn in_one_piece(body: Body) -> Body {
    let mut parts = body.into_data_stream();
    let mut early = Vec::new();
    let ended = tokio::time::timeout(SOON, async {
        while let Some(part) = parts.next().await {
            early.extend_from_slice(&part?);
        }
        Ok::<_, axum::Error>(())
    });
    match ended.await {
        Ok(Ok(())) => Body::from(early),
        Ok(Err(error)) => Body::from_stream(stream::iter([Ok(Bytes::from(early)), Err(error)])),
        Err(_) => Body::from_stream(stream::iter([Ok(Bytes::from(early))]).chain(parts)),
    }
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

fn watched(body: Body, stream: OpenStream) -> Body {
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
