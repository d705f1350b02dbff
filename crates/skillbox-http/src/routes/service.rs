//! Health, documentation and metrics.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use schemars::JsonSchema;
use serde::Serialize;

use crate::app::{App, run_blocking};
use crate::error::ApiError;
use crate::metrics::CurrentLoad;

/// The health of the server.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Health {
    /// `ok` or `ready`.
    status: &'static str,
    /// The version of skillbox.
    version: &'static str,
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The stored bytes are counted at most this often, because counting visits every file.
const STORED_BYTES_MAX_AGE: Duration = Duration::from_secs(60);

pub(crate) async fn health() -> Json<Health> {
    Json(Health {
        status: "ok",
        version: VERSION,
    })
}

pub(crate) async fn ready(State(app): State<Arc<App>>) -> Result<Json<Health>, ApiError> {
    if app.stopping.is_cancelled() {
        return Err(ApiError::busy("the server is shutting down"));
    }
    if !app.tenants.get().all().iter().all(|tenant| tenant.runtime.is_healthy()) {
        return Err(ApiError::busy("the sandbox spawner has died; restart the server"));
    }
    Ok(Json(Health {
        status: "ready",
        version: VERSION,
    }))
}

pub(crate) async fn openapi(State(app): State<Arc<App>>) -> Response {
    respond("application/json", app.openapi_json.clone())
}

pub(crate) async fn docs(State(app): State<Arc<App>>) -> Response {
    let mut response = respond("text/html; charset=utf-8", app.openapi_page.clone());
    // The page has no scripts, images or external resources.
    let policy = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

pub(crate) async fn metrics(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let text = run_blocking(move || {
        let mut sessions = 0;
        for tenant in app.tenants.get().all() {
            sessions += tenant.runtime.sessions().count()?;
        }
        let (running, queued) = app.run_queue.running_and_waiting();
        Ok(app.metrics.render(&CurrentLoad {
            running,
            queued,
            sessions,
            resident_bytes: resident_bytes(),
            parked_sandboxes: app.runtime.parked_sandboxes(),
            audit_forward: app
                .runtime
                .trust()
                .forward_status()
                .map_err(|error| ApiError::internal(&error))?,
            stored_bytes: app.runtime.stored_bytes(STORED_BYTES_MAX_AGE),
        }))
    })
    .await?;
    Ok(respond("text/plain; version=0.0.4; charset=utf-8", text.into()))
}

fn respond(content_type: &'static str, body: Bytes) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static(content_type))], body).into_response()
}

fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
