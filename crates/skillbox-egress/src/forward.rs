//! Forwards a checked request to its host, and passes upgraded connections on.

use std::sync::Arc;

use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{EXPECT, HOST};
use hyper::http::request::Parts;
use hyper::http::uri::PathAndQuery;
use hyper::{Request, Response, StatusCode, Uri, Version};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Mutex;

use crate::answer::{StreamBody, text_answer};
use crate::connection_headers::remove_connection_headers;
use crate::denial::{Failure, Refusal, Target};
use crate::metered_stream::Meter;
use crate::origin_connection::OriginConnection;
use crate::replace_body::replace_body;
use crate::replace_head::replace_head;
use crate::request_check::check_request;
use crate::request_host::{Scheme, has_ambiguous_length};
use crate::run_state::RunState;
use crate::scrub_answer::{ask_for_plain_answer, scrub_answer};

/// The most bytes of the body of a denied request that are read.
const MAX_DISCARDED_BYTES: usize = 256 << 10;

/// The connection for the next request; none if there is none yet, or the last one failed.
pub(crate) type CurrentConnection = Mutex<Option<OriginConnection>>;

/// Forwards a request if the rules allow it.
pub(crate) async fn forward(
    run: &Arc<RunState>,
    connection: &CurrentConnection,
    (target, scheme): (&Target, Scheme),
    request: Request<Incoming>,
) -> Result<Response<StreamBody>, Refusal> {
    if has_ambiguous_length(request.headers()) {
        return Ok(text_answer(
            StatusCode::BAD_REQUEST,
            "the length of the body is ambiguous",
        ));
    }
    let is_http2 = request.version() == Version::HTTP_2;
    let (mut parts, body) = request.into_parts();
    if let Err(denial) = check_request(run, (target, scheme), &parts) {
        discard(run, body).await;
        return Err(denial.into());
    }
    // The server side answers it as soon as the body is read.
    parts.headers.remove(EXPECT);
    if is_http2 {
        parts.headers.remove(HOST);
    }
    let is_upgrade = remove_connection_headers(&mut parts.headers) && !is_http2;
    let body = insert_secrets(run, target, &mut parts, body).await?;
    let Some(uri) = uri_for_origin(&parts, target, scheme) else {
        return Ok(text_answer(StatusCode::BAD_REQUEST, "the path is not valid"));
    };
    parts.uri = uri;
    let mut request = Request::from_parts(parts, body);
    let client_upgrade = is_upgrade.then(|| hyper::upgrade::on(&mut request));
    let (answer, meter) = {
        let mut connection = connection.lock().await;
        let mut ready = OriginConnection::reuse_or_connect(connection.take(), run, target, scheme).await?;
        let answer = ready.send(request);
        let meter = Arc::clone(ready.meter());
        *connection = Some(ready);
        (answer, meter)
    };
    let mut response = answer.await.map_err(|error| Failure::NoAnswer(error.to_string()))?;
    if let Some(client_upgrade) = client_upgrade
        && response.status() == StatusCode::SWITCHING_PROTOCOLS
    {
        let server_upgrade = hyper::upgrade::on(&mut response);
        let run_state = Arc::clone(run);
        run.spawn(async move {
            if let (Ok(client), Ok(server)) = tokio::join!(client_upgrade, server_upgrade) {
                copy_upgraded(&run_state, &meter, TokioIo::new(client), TokioIo::new(server)).await;
            }
        });
    }
    if run.credentials.placeholders.has_secret_for(target) {
        return Ok(scrub_answer(&run.credentials.redactor, response)?);
    }
    Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()))
}

/// Replaces the placeholders of the request by the values, if all of them may be sent to this host.
async fn insert_secrets(
    run: &Arc<RunState>,
    target: &Target,
    request: &mut Parts,
    body: Incoming,
) -> Result<StreamBody, Refusal> {
    let placeholders = &run.credentials.placeholders;
    if placeholders.is_empty() {
        return Ok(body.map_err(Into::into).boxed_unsync());
    }
    let head = replace_head(placeholders, target, request);
    let mut head = match head.and_then(|head| head.check_conflict().map(|()| head)) {
        Ok(head) => head,
        Err(denial) => {
            discard(run, body).await;
            return Err(denial.into());
        }
    };
    if placeholders.has_secret_for(target) {
        ask_for_plain_answer(&mut request.headers);
    }
    let body = replace_body(run, target, &mut request.headers, body, &mut head.used).await?;
    head.check_conflict()?;
    Ok(body)
}

/// Reads a small body that nobody needs. Otherwise the client of HTTP/2 sees a cancelled request in place of the answer.
async fn discard(run: &RunState, body: Incoming) {
    let read = Limited::new(body, MAX_DISCARDED_BYTES).collect();
    // A larger or slower body ends as it would without this.
    let _ = tokio::time::timeout(run.limits.first_bytes, read).await;
}

/// The URL as the host expects it: only the path in HTTP/1, and the checked host in HTTP/2.
fn uri_for_origin(request: &Parts, target: &Target, scheme: Scheme) -> Option<Uri> {
    let path = request.uri.path_and_query().map_or("/", PathAndQuery::as_str);
    if request.version != Version::HTTP_2 {
        return path.parse().ok();
    }
    let authority = if target.port == scheme.default_port() {
        target.host.to_string()
    } else {
        target.to_string()
    };
    let uri = Uri::builder().scheme(scheme.as_str()).authority(authority);
    uri.path_and_query(path).build().ok()
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
