//! The name of a session in a request over HTTP: in the address (`/mcp/s/NAME`), in a header, or as an argument.

use axum::extract::Request;
use axum::http::{HeaderName, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use rmcp::ErrorData;
use serde_json::json;

/// The header that names a session.
const HEADER: HeaderName = HeaderName::from_static("skillbox-session");
/// The path below which addresses name a session.
const PATH_PREFIX: &str = "/mcp/s/";
/// How the handles of the server begin.
const HANDLE_PREFIX: &str = "mcp-";
/// Knowing the name makes a caller a client of the session, so a name must not be guessed: 22 characters of base64 are 128
/// random bits.
const MIN_CHARS: usize = 22;
const MAX_CHARS: usize = 128;

/// A valid name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionName(String);

impl SessionName {
    /// Parses a name.
    pub(crate) fn parse(text: &str) -> Result<Self, ErrorData> {
        let is_allowed = |character: char| character.is_ascii_alphanumeric() || character == '-' || character == '_';
        if (MIN_CHARS..=MAX_CHARS).contains(&text.len()) && text.chars().all(is_allowed) {
            return Ok(Self(text.to_owned()));
        }
        let message = format!(
            "the name of a session has {MIN_CHARS} to {MAX_CHARS} letters, digits, `-` and `_`: it must not be guessed, because \
             it is all that a caller needs to use the session; generate one, for example with `openssl rand -hex 16`"
        );
        let error = json!({"error": {"code": "invalid_request", "message": message, "field": "session"}});
        Err(ErrorData::invalid_params(message, Some(error)))
    }

    /// A handle in `_meta`, which only leads to a session that exists.
    pub(crate) fn parse_handle(text: &str) -> Self {
        Self::parse(text).unwrap_or_else(|_| Self(HANDLE_PREFIX.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the name is a handle of the server, which no client can choose.
    pub(crate) fn is_issued_by_server(&self) -> bool {
        self.0.starts_with(HANDLE_PREFIX)
    }
}

/// Middleware: reads the name of the session from the address or the header of a request, and adds it to the request's
/// extensions. Refuses an invalid name.
pub(crate) async fn read_session_name(mut request: Request, next: Next) -> Response {
    let in_path = request.uri().path().strip_prefix(PATH_PREFIX).map(str::to_owned);
    let in_header = request.headers().get(HEADER);
    let in_header = in_header.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let name = match (in_path, in_header) {
        (None, None) => return next.run(request).await,
        (Some(path), Some(header)) if path != header => Err(ErrorData::invalid_params(
            "the address and the header name different sessions",
            None,
        )),
        (Some(name), _) | (None, Some(name)) => SessionName::parse(&name),
    };
    match name {
        Ok(name) => {
            request.extensions_mut().insert(name);
            next.run(request).await
        }
        Err(error) => {
            let body = json!({"jsonrpc": "2.0", "id": null, "error": error});
            (StatusCode::BAD_REQUEST, axum::Json(body)).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_can_be_guessed_are_refused() {
        let random = "0123456789abcdef0123456789abcdef";
        assert_eq!(SessionName::parse(random).unwrap().as_str(), random);
        assert!(SessionName::parse(&"x".repeat(MIN_CHARS)).is_ok());
        for name in [
            "",
            "demo",
            "../../etc/passwd-and-more-text",
            &"x".repeat(MIN_CHARS - 1),
            &"x".repeat(200),
        ] {
            assert!(SessionName::parse(name).is_err(), "{name}");
        }
    }
}
