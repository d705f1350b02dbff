//! Replaces placeholders in the bodies of requests: forms and JSON up to a limit. Others pass, and are searched.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, TRANSFER_ENCODING};
use skillbox_model::SecretName;
use tokio::time::{Instant, timeout_at};

use crate::answer::{BodyError, StreamBody, full};
use crate::denial::{Denial, Failure, Refusal, Target};
use crate::placeholder::MAX_PLACEHOLDER_BYTES;
use crate::replace_head::percent_encode;
use crate::run_state::RunState;

/// The largest body in which placeholders are replaced.
pub(crate) const MAX_REPLACED_BYTES: usize = 256 << 10;

/// Replaces the placeholders in the body of a request, and corrects its length.
pub(crate) async fn replace_body(
    run: &Arc<RunState>,
    target: &Target,
    headers: &mut HeaderMap,
    mut body: Incoming,
    used: &mut BTreeSet<SecretName>,
) -> Result<StreamBody, Refusal> {
    if body.is_end_stream() {
        return Ok(body.map_err(Into::into).boxed_unsync());
    }
    let Some(encode) = value_encoding(headers) else {
        return Ok(SearchedBody::new(run, target, None, body).boxed_unsync());
    };
    // One body of each run at a time for each permit: a script can open many requests.
    let permit = run.body_buffers.acquire().await;
    let mut content = BytesMut::new();
    let deadline = Instant::now() + run.limits.idle;
    loop {
        let frame = timeout_at(deadline, body.frame()).await;
        match frame.map_err(|_| Failure::NoAnswer("the body did not arrive in time".to_owned()))? {
            None => break,
            Some(Err(error)) => return Err(Failure::NoAnswer(format!("the body ended early: {error}")).into()),
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    content.extend_from_slice(data);
                }
            }
        }
        if content.len() > MAX_REPLACED_BYTES {
            return Ok(SearchedBody::new(run, target, Some(content.freeze()), body).boxed_unsync());
        }
    }
    drop(permit);
    let content = match run.credentials.placeholders.replace(target, &content, encode, used)? {
        Some(replaced) => Bytes::from(replaced),
        None => content.freeze(),
    };
    headers.remove(TRANSFER_ENCODING);
    headers.insert(CONTENT_LENGTH, HeaderValue::from(content.len()));
    Ok(full(content))
}

/// How a body writes a value; none if it is neither a form nor JSON, or compressed.
fn value_encoding(headers: &HeaderMap) -> Option<fn(&str) -> String> {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    if text(CONTENT_ENCODING).is_some_and(|encoding| !encoding.eq_ignore_ascii_case("identity")) {
        return None;
    }
    let kind = text(CONTENT_TYPE)?.split(';').next()?.trim().to_ascii_lowercase();
    if kind == "application/x-www-form-urlencoded" {
        Some(percent_encode)
    } else if kind == "application/json" || kind == "text/json" || kind.ends_with("+json") {
        Some(json_encode)
    } else {
        None
    }
}

/// A value as a part of a text in JSON.
fn json_encode(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// A body that passes unchanged, and is searched for placeholders: one of a secret for this host is noted in the report,
/// and another one ends the request.
struct SearchedBody {
    run: Arc<RunState>,
    target: Target,
    /// What was read already.
    first: Option<Bytes>,
    inner: Incoming,
    /// The last bytes, in which a placeholder may have begun.
    tail: Vec<u8>,
    reported: BTreeSet<SecretName>,
}

impl SearchedBody {
    fn new(run: &Arc<RunState>, target: &Target, first: Option<Bytes>, inner: Incoming) -> Self {
        Self {
            run: Arc::clone(run),
            target: target.clone(),
            first,
            inner,
            tail: Vec::new(),
            reported: BTreeSet::new(),
        }
    }

    fn search(&mut self, data: &[u8]) -> Result<(), BodyError> {
        let mut text = std::mem::take(&mut self.tail);
        text.extend_from_slice(data);
        for secret in self.run.credentials.placeholders.find_all(&text) {
            if !self.reported.insert(secret.name.clone()) {
                continue;
            }
            let name = secret.name.clone();
            let is_granted = secret.is_for(&self.target);
            let denial = if is_granted {
                Denial::BodyNotReplaced(name)
            } else {
                Denial::SecretNotGranted(name)
            };
            self.run.record_denial(&self.target, &denial);
            if !is_granted {
                return Err(denial.into());
            }
        }
        let start = text.len().saturating_sub(MAX_PLACEHOLDER_BYTES - 1);
        text.drain(..start);
        self.tail = text;
        Ok(())
    }
}

impl Body for SearchedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = match self.first.take() {
            Some(first) => Frame::data(first),
            None => match ready!(Pin::new(&mut self.inner).poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                None => return Poll::Ready(None),
            },
        };
        let searched = match frame.data_ref() {
            Some(data) => {
                let data = data.clone();
                self.search(&data)
            }
            None => Ok(()),
        };
        Poll::Ready(Some(searched.map(|()| frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.first {
            None => self.inner.size_hint(),
            Some(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_and_json_have_an_encoding() {
        let encoded = |kind: &'static str, encoding: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            if let Some(encoding) = encoding {
                headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
            }
            value_encoding(&headers).map(|encode| encode("a\"b&c d"))
        };
        let form = Some("a%22b%26c%20d".to_owned());
        let json = Some("a\\\"b&c d".to_owned());
        assert_eq!(encoded("application/x-www-form-urlencoded", None), form);
        assert_eq!(encoded("Application/JSON; charset=utf-8", None), json);
        assert_eq!(encoded("application/vnd.api+json", Some("identity")), json);
        assert_eq!(encoded("application/json", Some("gzip")), None);
        assert_eq!(encoded("multipart/form-data; boundary=x", None), None);
        assert_eq!(encoded("text/plain", None), None);
        assert!(value_encoding(&HeaderMap::new()).is_none());
    }
}
