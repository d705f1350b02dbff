//! Who is let in: the bearer of a token, or, where there are none, programs of this machine.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use skillbox_model::ErrorCode;

use crate::app::App;
use crate::error::ApiError;
use crate::tenant::{Tenant, Tenants};

/// Puts the tenant into the request, or refuses it.
pub(crate) async fn know_the_caller(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    match caller(&app.tenants, request.headers()) {
        Ok(tenant) => {
            tracing::Span::current().record("tenant", tenant.label());
            request.extensions_mut().insert(tenant);
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

/// Where no token is asked for, a page of any site could have its visitor's browser speak to us under a name of its
/// own that leads here. So the name has to be this machine's, and a browser has to come from a page of ours.
pub(crate) async fn only_this_machine(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let refused = match &app.tenants {
        Tenants::ByToken(..) => None,
        Tenants::Local(_) => foreign(request.headers(), request.uri()),
    };
    match refused {
        Some(error) => error.into_response(),
        None => next.run(request).await,
    }
}

fn caller(tenants: &Tenants, headers: &HeaderMap) -> Result<Arc<Tenant>, ApiError> {
    if let Tenants::Local(tenant) = tenants {
        return Ok(tenant.clone());
    }
    let refused = |message: &str| ApiError::new(ErrorCode::Unauthorized, message);
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let (scheme, token) = given
        .and_then(|value| value.split_once(' '))
        .ok_or_else(|| refused("a bearer token is missing"))?;
    let tenant = tenants
        .of_token(token.trim())
        .filter(|_| scheme.eq_ignore_ascii_case("bearer"));
    tenant
        .cloned()
        .ok_or_else(|| refused("the bearer token is not one of this server"))
}

fn foreign(headers: &HeaderMap, uri: &Uri) -> Option<ApiError> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = uri
        .authority()
        .map(|authority| authority.as_str())
        .or(text(header::HOST));
    let message = match (host, text(header::ORIGIN)) {
        (Some(host), _) if !is_loopback(host) => format!("requests for {host:?} are not answered here"),
        (None, _) => "the request does not say for which host it is".to_owned(),
        (_, Some(origin)) if !origin.strip_prefix("http://").is_some_and(is_loopback) => {
            format!("pages of {origin:?} are not let in")
        }
        _ => return None,
    };
    let error = ApiError::new(ErrorCode::Unauthorized, message);
    let hint = "use http://127.0.0.1, or set up tokens with `skillbox serve token TENANT`";
    Some(error.hint(hint).with_status(StatusCode::FORBIDDEN))
}

/// Whether a host, with or without a port, is a name of this machine that no other site can have.
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
    fn names_of_this_machine_and_no_others() {
        for ours in [
            "localhost",
            "localhost:8484",
            "127.0.0.1:1",
            "LOCALHOST",
            "[::1]:8484",
            "127.1.2.3",
        ] {
            assert!(is_loopback(ours), "{ours}");
        }
        for theirs in [
            "example.org",
            "localhost.example.org",
            "10.0.0.1:80",
            "127.0.0.1.nip.io",
            "",
            "0.0.0.0",
        ] {
            assert!(!is_loopback(theirs), "{theirs}");
        }
    }
}
