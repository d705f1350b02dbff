//! Forwards checked requests of HTTP/1 over one connection, and passes upgraded connections on.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, UPGRADE};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use skillbox_model::{ErrorBody, ErrorCode};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::denial::{Denial, Failure, Refusal, Target};
use crate::metered_stream::{Meter, MeteredStream};
use crate::request_host::has_ambiguous_length;
use crate::run_state::RunState;
use crate::upstream::connect;

/// The body of an answer.
pub(crate) type AnswerBody = BoxBody<Bytes, hyper::Error>;

/// The largest head of a request.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// Headers that belong to one connection and are not passed on (RFC 9110, 7.6.1).
const CONNECTION_HEADERS: [&str; 5] = [
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
];

/// The server side of HTTP/1 towards a script. A script that sends a head slowly is disconnected.
pub(crate) fn server(run: &RunState) -> hyper::server::conn::http1::Builder {
    let mut server = hyper::server::conn::http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(run.limits.first_bytes)
        .max_buf_size(MAX_HEAD_BYTES)
        .preserve_header_case(true)
        .half_close(true);
    server
}

/// A connection to one host that carries one request after the other.
pub(crate) struct OriginConnection {
    target: Target,
    sender: SendRequest<Incoming>,
    meter: Arc<Meter>,
}

impl OriginConnection {
    /// Begins HTTP/1 on a connection.
    pub async fn start(run: &Arc<RunState>, upstream: MeteredStream, target: &Target) -> Result<Self, Refusal> {
        let meter = Arc::clone(upstream.meter());
        let (sender, connection) = http1::Builder::new()
            .preserve_header_case(true)
            .handshake(TokioIo::new(upstream))
            .await
            .map_err(|error| Failure::NotConnected(error.to_string()))?;
        let (idle, idle_meter) = (run.limits.idle, Arc::clone(&meter));
        run.spawn(async move {
            tokio::select! {
                // The request that was on its way fails with the same error.
                _ = connection.with_upgrades() => {}
                () = idle_meter.wait_until_idle(idle) => {}
            }
        });
        Ok(Self {
            target: target.clone(),
            sender,
            meter,
        })
    }

    /// A connection for the next request: this one if it is open and leads to the target, otherwise a new one, about
    /// which is decided anew.
    pub async fn reuse_or_connect(
        current: Option<Self>,
        run: &Arc<RunState>,
        target: &Target,
    ) -> Result<Self, Refusal> {
        if let Some(mut current) = current
            && current.target == *target
            && current.sender.ready().await.is_ok()
        {
            return Ok(current);
        }
        let upstream = connect(run, target).await?;
        Self::start(run, upstream, target).await
    }

    /// Sends a request whose host was checked.
    pub async fn forward(&mut self, run: &Arc<RunState>, mut request: Request<Incoming>) -> Response<AnswerBody> {
        if has_ambiguous_length(request.headers()) {
            return text_answer(StatusCode::BAD_REQUEST, "the length of the body is ambiguous");
        }
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let Ok(uri) = path.parse::<Uri>() else {
            return text_answer(StatusCode::BAD_REQUEST, "the path is not valid");
        };
        *request.uri_mut() = uri;
        let is_upgrade = remove_connection_headers(request.headers_mut());
        let client_upgrade = is_upgrade.then(|| hyper::upgrade::on(&mut request));
        let mut response = match self.sender.send_request(request).await {
            Ok(response) => response,
            Err(error) => {
                let message = format!("{} did not answer: {error}", self.target);
                return text_answer(StatusCode::BAD_GATEWAY, &message);
            }
        };
        if let Some(client_upgrade) = client_upgrade
            && response.status() == StatusCode::SWITCHING_PROTOCOLS
        {
            let server_upgrade = hyper::upgrade::on(&mut response);
            let (run_state, meter) = (Arc::clone(run), Arc::clone(&self.meter));
            run.spawn(async move {
                if let (Ok(client), Ok(server)) = tokio::join!(client_upgrade, server_upgrade) {
                    copy_upgraded(&run_state, &meter, TokioIo::new(client), TokioIo::new(server)).await;
                }
            });
        }
        response.map(BodyExt::boxed)
    }
}

async fn copy_upgraded<A, B>(run: &RunState, meter: &Meter, mut client: A, mut server: B)
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    tokio::select! {
        _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
        () = meter.wait_until_idle(run.limits.idle) => {}
    }
}

/// Removes the headers that belong to the connection of the script. Returns whether the request asks for another
/// protocol, such as WebSocket, for which two of them stay.
fn remove_connection_headers(headers: &mut HeaderMap) -> bool {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let is_upgrade = named.contains(&UPGRADE) && headers.contains_key(UPGRADE);
    for name in CONNECTION_HEADERS {
        headers.remove(name);
    }
    for name in named.iter().filter(|name| **name != UPGRADE || !is_upgrade) {
        headers.remove(name);
    }
    headers.remove(CONNECTION);
    if is_upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    }
    is_upgrade
}

/// The answer to a request that was not forwarded. A denial is the error object of skillbox.
pub(crate) fn refusal_answer(refusal: &Refusal, target: &str) -> Response<AnswerBody> {
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
pub(crate) fn text_answer(status: StatusCode, text: &str) -> Response<AnswerBody> {
    answer(status, "text/plain; charset=utf-8", format!("{text}\n"))
}

/// An answer without a body.
pub(crate) fn empty_answer() -> Response<AnswerBody> {
    Response::new(full(Bytes::new()))
}

fn answer(status: StatusCode, content_type: &'static str, body: String) -> Response<AnswerBody> {
    let mut response = Response::new(full(body.into()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn full(bytes: Bytes) -> AnswerBody {
    Full::new(bytes).map_err(|never| match never {}).boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_connection_are_removed() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, x-mine"),
            ("x-mine", "1"),
            ("proxy-authorization", "Basic x"),
            ("upgrade", "h2c"),
            ("accept", "*/*"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        assert!(!remove_connection_headers(&mut headers));
        let names: std::collections::BTreeSet<&str> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["accept", "upgrade"].into());
        headers.insert(CONNECTION, HeaderValue::from_static("keep-alive, Upgrade"));
        assert!(remove_connection_headers(&mut headers));
        assert_eq!(headers[CONNECTION], "upgrade");
    }
}
