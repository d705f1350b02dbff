//! Removes the values of secrets from the answers of hosts that received them.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Response;
use hyper::body::{Body, Frame, Incoming};
use hyper::ext::ReasonPhrase;
use hyper::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, IF_RANGE,
    RANGE,
};

use crate::answer::{BodyError, StreamBody};
use crate::denial::Failure;
use crate::redact::{RedactStream, Redactor};

/// Asks for an answer that can be searched: not compressed, and not in pieces that a script could choose so that each
/// contains only a part of a value. Servers may ignore both headers.
pub(crate) fn ask_for_plain_answer(headers: &mut HeaderMap) {
    headers.remove(RANGE);
    headers.remove(IF_RANGE);
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
}

/// Removes the values from an answer: its headers, its body and its trailers. An answer that is compressed nevertheless
/// is refused.
pub(crate) fn scrub_answer(redactor: &Redactor, answer: Response<Incoming>) -> Result<Response<StreamBody>, Failure> {
    let (mut parts, body) = answer.into_parts();
    let mut encodings = parts.headers.get_all(CONTENT_ENCODING).iter();
    if let Some(encoding) = encodings.find(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(Failure::CompressedAnswer(
            String::from_utf8_lossy(encoding.as_bytes()).into_owned(),
        ));
    }
    // The text after the status code is the host's own, and nobody reads it.
    parts.extensions.remove::<ReasonPhrase>();
    scrub_headers(redactor, &mut parts.headers);
    if body.is_end_stream() {
        return Ok(Response::from_parts(parts, body.map_err(Into::into).boxed_unsync()));
    }
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.remove(ACCEPT_RANGES);
    let body = ScrubbedBody {
        inner: body,
        stream: Some(redactor.stream()),
        trailers: None,
        redactor: redactor.clone(),
    };
    Ok(Response::from_parts(parts, body.boxed_unsync()))
}

fn scrub_headers(redactor: &Redactor, headers: &mut HeaderMap) {
    let is_changed = |bytes: &[u8]| redactor.redact_bytes(bytes) != bytes;
    let names: Vec<HeaderName> = headers
        .keys()
        .filter(|name| is_changed(name.as_str().as_bytes()))
        .cloned()
        .collect();
    for name in names {
        headers.remove(name);
    }
    for value in headers.values_mut() {
        let scrubbed = redactor.redact_bytes(value.as_bytes()).into_owned();
        if scrubbed != value.as_bytes() {
            *value = HeaderValue::from_bytes(&scrubbed).unwrap_or(HeaderValue::from_static("[secret]"));
        }
    }
}

/// A body without the values. What may be the beginning of a value waits for the bytes after it.
struct ScrubbedBody {
    inner: Incoming,
    /// None after the last byte.
    stream: Option<RedactStream>,
    trailers: Option<HeaderMap>,
    redactor: Redactor,
}

impl Body for ScrubbedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        loop {
            let Some(stream) = &mut this.stream else {
                return Poll::Ready(this.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))));
            };
            let mut output = Vec::new();
            match ready!(Pin::new(&mut this.inner).poll_frame(cx)) {
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => stream.push(&data, &mut output),
                    Err(frame) => {
                        let mut trailers = frame.into_trailers().unwrap_or_default();
                        scrub_headers(&this.redactor, &mut trailers);
                        this.trailers = Some(trailers);
                    }
                },
                None => {
                    stream.finish(&mut output);
                    this.stream = None;
                }
            }
            if !output.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(output.into()))));
            }
        }
    }
}
