//! Authenticates requests by bearer token or, on a server without tokens, accepts requests to this host only.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use skillbox_model::ErrorCode;

use crate::app::App;
use crate::error::ApiError;
use crate::tenant::{Tenant, Tenants};

/// Adds the tenant to the request, or rejects the request.
pub(crate) async fn authenticate(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    match tenant_of_request(&app.tenants, request.headers()) {
        Ok(tenant) => {
            tracing::Span::current().record("tenant", tenant.label());
            request.extensions_mut().insert(tenant);
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

/// Protects a server without tokens from DNS rebinding: a page of any site could make a browser on this host send
/// requests under a name that resolves to a loopback address. So the `Host` must be a loopback name, and the
/// `Origin`, if present, must be one too.
pub(crate) async fn reject_foreign_hosts(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let checked = match &app.tenants {
        Tenants::ByToken(..) => Ok(()),
        Tenants::Local(_) => check_host(request.headers(), request.uri()),
    };
    match checked {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

fn tenant_of_request(tenants: &Tenants, headers: &HeaderMap) -> Result<Arc<Tenant>, ApiError> {
    if let Tenants::Local(tenant) = tenants {
        return Ok(tenant.clone());
    }
    let unauthorized = |message: &str| ApiError::new(ErrorCode::Unauthorized, message);
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let (scheme, token) = given
        .and_then(|value| value.split_once(' '))
        .ok_or_else(|| unauthorized("the bearer token is missing"))?;
    let tenant = tenants
        .by_token(token.trim())
        .filter(|_| scheme.eq_ignore_ascii_case("bearer"));
    tenant
        .cloned()
        .ok_or_else(|| unauthorized("the bearer token is not valid on this server"))
}

fn check_host(headers: &HeaderMap, uri: &Uri) -> Result<(), ApiError> {
    let header_text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = uri
        .authority()
        .map(|authority| authority.as_str())
        .or(header_text(header::HOST));
    let message = match (host, header_text(header::ORIGIN)) {
        (Some(host), _) if !is_loopback(host) => format!("requests to the host {host:?} are not allowed"),
        (None, _) => "the request has no Host header".to_owned(),
        (_, Some(origin)) if !origin.strip_prefix("http://").is_some_and(is_loopback) => {
            format!("requests from the origin {origin:?} are not allowed")
        }
        _ => return Ok(()),
    };
    let error = ApiError::new(ErrorCode::Unauthorized, message);
    let hint = "use http://127.0.0.1, or configure tokens with `skillbox serve token TENANT`";
    Err(error.with_hint(hint).with_status(StatusCode::FORBIDDEN))
}

/// Whether a host, with or without a port, is a loopback address or `localhost`, which no site can own.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    name.eq_ignore_ascii_case("localhost")
        || name == "[::1]"
        || name
            .parse::<std::net::Ipv4Addr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_names_are_accepted() {
        for accepted in [
            "localhost",
            "localhost:8484",
            "127.0.0.1:1",
            "LOCALHOST",
            "[::1]:8484",
            "127.1.2.3",
        ] {
            assert!(is_loopback(accepted), "{accepted}");
        }
        for rejected in [
            "example.org",
            "localhost.example.org",
            "10.0.0.1:80",
            "127.0.0.1.nip.io",
            "",
            "0.0.0.0",
        ] {
            assert!(!is_loopback(rejected), "{rejected}");
        }
    }
}
