//! Middleware that logs and counts every request and adds the common headers to its response.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument;

use crate::app::App;
use crate::request_id::with_request_id;

const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");
const MAX_REQUEST_ID_BYTES: usize = 128;

/// Logs and counts a request, and adds the common headers to its response.
pub(crate) async fn log_request(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let id = request_id(&request);
    let method = request.method().clone();
    // The route pattern, not the path: the number of metrics must not grow with the paths that clients invent.
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let route = matched.as_ref().map_or("(none)", MatchedPath::as_str);
    let span = tracing::info_span!(
        "http.request",
        %method,
        route,
        path = request.uri().path(),
        request_id = id.to_str().unwrap_or_default(),
        tenant = tracing::field::Empty,
        status = tracing::field::Empty,
    );
    let started = Instant::now();
    let handled = next.run(request).instrument(span.clone());
    let mut response = with_request_id(id.to_str().unwrap_or_default(), handled).await;
    span.record("status", response.status().as_u16());
    app.metrics
        .record_request(&method, route, response.status().as_u16(), started.elapsed());
    let headers = response.headers_mut();
    headers.insert(REQUEST_ID_HEADER, id);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    // No response may act as a web page, except the API reference, which sets its own policy.
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static(
            "default-src 'none'; frame-ancestors 'none'; sandbox",
        ));
    response
}

/// The request ID that the client sent if it is valid, else a new one.
fn request_id(request: &Request) -> HeaderValue {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let given = request.headers().get(REQUEST_ID_HEADER).filter(|given| {
        let bytes = given.as_bytes();
        !bytes.is_empty() && bytes.len() <= MAX_REQUEST_ID_BYTES && bytes.iter().all(is_plain)
    });
    given.cloned().unwrap_or_else(|| {
        let new_id = uuid::Uuid::now_v7().simple().to_string();
        HeaderValue::from_str(&new_id).unwrap_or_else(|error| unreachable!("a UUID is a valid header value: {error}"))
    })
}
