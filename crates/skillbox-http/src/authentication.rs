//! Authenticates requests by bearer token or, on a server without tokens, accepts requests to this host only.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use skillbox_model::ErrorCode;

use crate::app::App;
use crate::error::ApiError;
use crate::listen::ListenAddress;
use crate::tenant::{Access, Tenants};

const METRICS_PATH: &str = "/metrics";

/// Adds the tenant to the request, or rejects the request.
pub(crate) async fn authenticate(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let tenants = app.tenants.get();
    let access = access_of_request(&tenants, request.headers())
        .and_then(|access| check_access(access, &tenants, request.uri().path()));
    match access {
        Ok(Access::Tenant(tenant)) => {
            tracing::Span::current().record("tenant", tenant.label());
            request.extensions_mut().insert(tenant);
            next.run(request).await
        }
        Ok(Access::Metrics) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

/// Protects a server without tokens from DNS rebinding: a page of any site could make a browser on this host send
/// requests under a name that resolves to a loopback address, and a page of another server on this host could send them
/// directly. So the `Host`, and the `Origin` if present, must be the address that this server is bound to, or `localhost`
/// with its port.
pub(crate) async fn reject_foreign_hosts(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let checked = match &*app.tenants.get() {
        Tenants::ByToken(..) => Ok(()),
        Tenants::Local(_) => check_host(request.headers(), request.uri(), app.served_address.get()),
    };
    match checked {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

/// Refuses a token that is not for this path: a token for metrics has no tenant, and where such tokens exist, only they
/// show the metrics, which are those of all tenants.
fn check_access(access: Access, tenants: &Tenants, path: &str) -> Result<Access, ApiError> {
    let forbidden = |message: &str, hint: &str| {
        let error = ApiError::new(ErrorCode::Unauthorized, message).with_hint(hint);
        Err(error.with_status(StatusCode::FORBIDDEN))
    };
    match (&access, path == METRICS_PATH) {
        (Access::Metrics, false) => forbidden(
            "this token is for metrics only",
            "use the token of a tenant; `skillbox serve token TENANT` creates one",
        ),
        (Access::Tenant(_), true) if tenants.have_metrics_token() => forbidden(
            "the metrics of this server need a token for metrics",
            "use the token that `skillbox serve token NAME --metrics` created",
        ),
        _ => Ok(access),
    }
}

fn access_of_request(tenants: &Tenants, headers: &HeaderMap) -> Result<Access, ApiError> {
    if let Tenants::Local(tenant) = tenants {
        return Ok(Access::Tenant(tenant.clone()));
    }
    let unauthorized = |message: &str| ApiError::new(ErrorCode::Unauthorized, message);
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let (scheme, token) = given
        .and_then(|value| value.split_once(' '))
        .ok_or_else(|| unauthorized("the bearer token is missing"))?;
    let access = tenants
        .by_token(token.trim())
        .filter(|_| scheme.eq_ignore_ascii_case("bearer"));
    access.ok_or_else(|| unauthorized("the bearer token is not valid on this server"))
}

fn check_host(headers: &HeaderMap, uri: &Uri, served: Option<&ListenAddress>) -> Result<(), ApiError> {
    let served = match served {
        Some(ListenAddress::Tcp(address)) => Some(address),
        // No browser connects to a socket in the file system, so the host may be any name, and nothing has an origin.
        Some(ListenAddress::Unix(_)) if !headers.contains_key(header::ORIGIN) => return Ok(()),
        _ => None,
    };
    let header_text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = uri
        .authority()
        .map(|authority| authority.as_str())
        .or(header_text(header::HOST));
    let is_served = |host: &str| served.is_some_and(|address| is_served_name(host, address));
    let message = match (host, header_text(header::ORIGIN)) {
        (Some(host), _) if !is_served(host) => format!("requests to the host {host:?} are not allowed"),
        (None, _) => "the request has no Host header".to_owned(),
        (_, Some(origin)) if !origin.strip_prefix("http://").is_some_and(is_served) => {
            format!("requests from the origin {origin:?} are not allowed")
        }
        _ => return Ok(()),
    };
    let error = ApiError::new(ErrorCode::Unauthorized, message);
    let hint = match served {
        Some(address) => format!("use http://{address}, or configure tokens with `skillbox serve token TENANT`"),
        None => "configure tokens with `skillbox serve token TENANT`".to_owned(),
    };
    Err(error.with_hint(hint).with_status(StatusCode::FORBIDDEN))
}

/// Whether a host with its port is the address that the server is bound to, or `localhost` with the same port. Another
/// server on this host is another origin, whose pages must not reach this one.
fn is_served_name(host: &str, served: &SocketAddr) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !name.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            (name, port.parse().ok())
        }
        _ => (host, Some(HTTP_PORT)),
    };
    let is_name = name.eq_ignore_ascii_case("localhost")
        || match served.ip() {
            IpAddr::V4(address) => name.parse() == Ok(address),
            IpAddr::V6(address) => {
                let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
                bare.is_some_and(|bare| bare.parse() == Ok(address))
            }
        };
    is_name && port == Some(served.port())
}

/// The port of a host or an origin without one.
const HTTP_PORT: u16 = 80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_served_address_and_localhost_are_accepted() {
        let check = |address: &str, host: &str| is_served_name(host, &address.parse().unwrap());
        for (address, accepted) in [
            ("127.0.0.1:8484", "localhost:8484"),
            ("127.0.0.1:8484", "LOCALHOST:8484"),
            ("127.0.0.1:8484", "127.0.0.1:8484"),
            ("[::1]:8484", "[::1]:8484"),
            ("127.0.0.1:80", "127.0.0.1"),
        ] {
            assert!(check(address, accepted), "{accepted}");
        }
        for rejected in [
            "localhost",
            "localhost:8485",
            "127.0.0.1:3000",
            "127.1.2.3:8484",
            "[::1]:8484",
            "example.org:8484",
            "localhost.example.org:8484",
            "127.0.0.1.nip.io:8484",
            "127.0.0.1:08484x",
            "127.0.0.1:",
            ":8484",
            "",
        ] {
            assert!(!check("127.0.0.1:8484", rejected), "{rejected}");
        }
    }
}
