//! Answers that skillbox gives in place of a host.

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use skillbox_model::{ErrorBody, ErrorCode};

use crate::denial::{Denial, Refusal};

/// Why a body ended early.
pub(crate) type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a request or an answer.
pub(crate) type StreamBody = UnsyncBoxBody<Bytes, BodyError>;

/// The answer to a request that was not forwarded. A denial is the error object of skillbox.
pub(crate) fn refusal_answer(refusal: &Refusal, target: &str) -> Response<StreamBody> {
    match refusal {
        Refusal::Failed(failure) => text_answer(
            StatusCode::BAD_GATEWAY,
            &format!("skillbox cannot reach {target}: {failure}"),
        ),
        Refusal::Denied(Denial::NotAProxyRequest) => text_answer(StatusCode::BAD_REQUEST, &refusal.to_string()),
        Refusal::Denied(denial) => {
            let error = ErrorBody::new(ErrorCode::GrantMissing, format!("{target} was denied: {denial}"));
            let json = serde_json::json!({ "error": error }).to_string();
            answer(StatusCode::FORBIDDEN, "application/json", format!("{json}\n"))
        }
    }
}

/// An answer with a line of text.
pub(crate) fn text_answer(status: StatusCode, text: &str) -> Response<StreamBody> {
    answer(status, "text/plain; charset=utf-8", format!("{text}\n"))
}

/// An answer without a body.
pub(crate) fn empty_answer() -> Response<StreamBody> {
    Response::new(full(Bytes::new()))
}

fn answer(status: StatusCode, content_type: &'static str, body: String) -> Response<StreamBody> {
    let mut response = Response::new(full(body.into()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// A body that is complete.
pub(crate) fn full(bytes: Bytes) -> StreamBody {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}
