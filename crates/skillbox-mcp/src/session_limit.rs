//! Limits the number of protocol sessions of the older revisions.
//!
//! A client creates one with `initialize`, and each takes memory until its client ends it. At the limit, the session that
//! was not used for longest makes way, unless all are in use.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use serde::Deserialize;

use crate::connection_tracker::{ConnectionTracker, SESSION_ID_HEADER};
use crate::http_accept::MAX_REQUEST_BYTES;
use crate::lock::lock;

/// Maximum number of sessions. Each takes about 60 KB.
const MAX_SESSIONS: usize = 1000;
/// A session that was used within this time does not make way for another.
const MIN_IDLE_TIME: Duration = Duration::from_secs(10);

/// The protocol sessions of one server.
#[derive(Clone)]
pub(crate) struct SessionLimit(Arc<Sessions>);

struct Sessions {
    manager: Arc<LocalSessionManager>,
    connections: ConnectionTracker,
    last_uses: Mutex<HashMap<String, Instant>>,
    /// The number of sessions that are being created.
    starting: AtomicUsize,
}

/// The part of a message that says what it asks for.
#[derive(Deserialize)]
struct MessageMethod {
    method: Option<String>,
}

/// Counts a session while it is created.
struct Starting<'a>(&'a AtomicUsize);

impl Drop for Starting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl SessionLimit {
    pub(crate) fn new(manager: Arc<LocalSessionManager>, connections: ConnectionTracker) -> Self {
        Self(Arc::new(Sessions {
            manager,
            connections,
            last_uses: Mutex::default(),
            starting: AtomicUsize::new(0),
        }))
    }

    /// Middleware: refuses to create a session over the limit. The body must be in memory already.
    pub(crate) async fn check(State(self_): State<Self>, request: Request, next: Next) -> Response {
        let sessions = self_.0;
        if let Some(id) = session_id(request.headers()) {
            sessions.record_use(id);
            return next.run(request).await;
        }
        if request.method() != Method::POST {
            return next.run(request).await;
        }
        let (head, body) = request.into_parts();
        let Ok(bytes) = to_bytes(body, MAX_REQUEST_BYTES).await else {
            return StatusCode::PAYLOAD_TOO_LARGE.into_response();
        };
        // What is no message of a known form counts as well; the service refuses it.
        let starts_session = serde_json::from_slice::<MessageMethod>(&bytes)
            .map_or(true, |message| message.method.as_deref() == Some("initialize"));
        let request = Request::from_parts(head, Body::from(bytes));
        if !starts_session {
            return next.run(request).await;
        }
        let starting = sessions.starting.fetch_add(1, Ordering::Relaxed);
        let _starting = Starting(&sessions.starting);
        if !sessions.make_way(starting).await {
            let message = format!("{MAX_SESSIONS} sessions are in use already; try again later\n");
            return (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "10")], message).into_response();
        }
        let response = next.run(request).await;
        if let Some(id) = session_id(response.headers()) {
            sessions.record_creation(id);
        }
        response
    }
}

impl Sessions {
    fn record_creation(&self, id: &str) {
        lock(&self.last_uses).insert(id.to_owned(), Instant::now());
    }

    fn record_use(&self, id: &str) {
        if let Some(last_use) = lock(&self.last_uses).get_mut(id) {
            *last_use = Instant::now();
        }
    }

    /// Removes and returns the id of the idle session that was not used for longest.
    fn take_oldest(&self, is_open: impl Fn(&str) -> bool) -> Option<String> {
        let mut last_uses = lock(&self.last_uses);
        last_uses.retain(|id, _| is_open(id));
        let idle = last_uses
            .iter()
            .filter(|(id, last_use)| last_use.elapsed() > MIN_IDLE_TIME && !self.connections.has_open_stream(id));
        let oldest = idle.min_by_key(|(_, last_use)| **last_use).map(|(id, _)| id.clone())?;
        last_uses.remove(&oldest);
        Some(oldest)
    }

    /// Ends the session that was not used for longest, if there are too many. Returns false if all are in use.
    async fn make_way(&self, starting: usize) -> bool {
        let open = self.manager.sessions.read().await;
        if open.len() + starting < MAX_SESSIONS {
            return true;
        }
        let oldest = self.take_oldest(|id| open.contains_key(id));
        drop(open);
        let Some(id) = oldest else { return false };
        if let Err(error) = self.manager.close_session(&id.as_str().into()).await {
            tracing::warn!(session = %id, "cannot close an idle session: {error}");
        }
        true
    }
}

fn session_id(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION_ID_HEADER)?.to_str().ok()
}
