//! Around every request: its id, its span, its count, and the headers of every answer.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument;

use crate::app::App;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const LONGEST_ID: usize = 128;

/// Gives the request an id, and its answer what every answer has.
pub(crate) async fn log_request(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let id = request_id(&request);
    let method = request.method().clone();
    // The pattern, not the path: what is counted must not grow with what clients invent.
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
    let begun = Instant::now();
    let mut response = next.run(request).instrument(span.clone()).await;
    span.record("status", response.status().as_u16());
    app.metrics
        .request(&method, route, response.status().as_u16(), begun.elapsed());
    let headers = response.headers_mut();
    headers.insert(REQUEST_ID, id);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    // No answer is a page that may act; the one that is for people brings its own rule.
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static(
            "default-src 'none'; frame-ancestors 'none'; sandbox",
        ));
    response
}

/// The client's own, where it is harmless, else a new one.
fn request_id(request: &Request) -> HeaderValue {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let given = request.headers().get(REQUEST_ID).filter(|given| {
        let bytes = given.as_bytes();
        !bytes.is_empty() && bytes.len() <= LONGEST_ID && bytes.iter().all(is_plain)
    });
    given.cloned().unwrap_or_else(|| {
        let made = uuid::Uuid::now_v7().simple().to_string();
        HeaderValue::from_str(&made).unwrap_or_else(|error| unreachable!("a UUID is a header's value: {error}"))
    })
}
