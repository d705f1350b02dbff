//! Reads and parses JSON bodies within their limits of size, time and memory.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::error::Category;
use skillbox_model::ErrorCode;

use crate::app::run_blocking;
use crate::body_budget::{BodyBudget, Reservation};
use crate::error::ApiError;
use crate::limits::Limits;

/// From this size on, a body is parsed on a blocking thread: on the event loop it would delay other requests.
const MAX_INLINE_PARSE_BYTES: usize = 64 << 10;

/// A parsed body, with the memory that it takes.
pub(crate) struct JsonBody<T> {
    pub value: T,
    /// Held until the value is no longer in use.
    pub reservation: Reservation,
}

/// The JSON body of a request, or `None` if the body is empty. It is parsed into its type directly, without a tree.
pub(crate) async fn read_json<T: DeserializeOwned + Send + 'static>(
    request: Request,
    budget: &BodyBudget,
    limit: usize,
) -> Result<Option<JsonBody<T>>, ApiError> {
    let (head, body) = request.into_parts();
    let limit = limit.min(budget.max_body_bytes());
    let (bytes, reservation) = read_body(body, budget, limit).await?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if !is_json(&head.headers) {
        let error = ApiError::invalid("the content type of the body is not application/json");
        return Err(error.with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
    }
    let value = if bytes.len() <= MAX_INLINE_PARSE_BYTES {
        parse_json(&bytes)?
    } else {
        run_blocking(move || parse_json(&bytes)).await?
    };
    Ok(Some(JsonBody { value, reservation }))
}

async fn read_body(body: Body, budget: &BodyBudget, limit: usize) -> Result<(Bytes, Reservation), ApiError> {
    let collecting = collect_body(body, budget, limit);
    tokio::time::timeout(Limits::BODY_TIMEOUT, collecting)
        .await
        .map_err(|_| {
            let error = ApiError::invalid("timed out waiting for the body");
            error.with_status(StatusCode::REQUEST_TIMEOUT)
        })?
}

async fn collect_body(mut body: Body, budget: &BodyBudget, limit: usize) -> Result<(Bytes, Reservation), ApiError> {
    let mut reservation = Reservation::default();
    let (mut first, mut collected) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| ApiError::invalid(format!("cannot read the body: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + collected.len() + data.len() > limit {
            return Err(body_too_large(limit as u64));
        }
        budget.extend(&mut reservation, data.len()).await?;
        // Most bodies are one frame, which is not copied.
        if first.is_empty() && collected.is_empty() {
            first = data;
        } else {
            if collected.is_empty() {
                collected.extend_from_slice(&std::mem::take(&mut first));
            }
            collected.extend_from_slice(&data);
        }
    }
    let bytes = if collected.is_empty() {
        first
    } else {
        collected.freeze()
    };
    Ok((bytes, reservation))
}

/// The error for a body over its limit.
pub(crate) fn body_too_large(limit: u64) -> ApiError {
    let error = ApiError::new(
        ErrorCode::LimitExceeded,
        format!("the body is larger than {limit} bytes"),
    );
    error
        .with_status(StatusCode::PAYLOAD_TOO_LARGE)
        .with_hint("send a smaller body")
}

fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = content_type
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    media_type.eq_ignore_ascii_case("application/json")
}

/// Parses a body; an error names the field.
fn parse_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    if has_too_many_values(bytes) {
        let message = format!("the body contains more than {} JSON values", Limits::MAX_JSON_VALUES);
        return Err(ApiError::new(ErrorCode::LimitExceeded, message).with_status(StatusCode::PAYLOAD_TOO_LARGE));
    }
    let not_json = |error: &serde_json::Error| ApiError::invalid(format!("the body is not valid JSON: {error}"));
    // The code that serde derives would also accept an array with the values in field order.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        serde_json::from_slice::<serde::de::IgnoredAny>(bytes).map_err(|error| not_json(&error))?;
        return Err(ApiError::invalid("the body is not a JSON object"));
    }
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let field = error.path().to_string();
        let error = error.into_inner();
        if error.classify() != Category::Data {
            return not_json(&error);
        }
        let invalid = ApiError::invalid(without_position(&error.to_string()));
        if field == "." {
            invalid
        } else {
            invalid.with_field(field)
        }
    })?;
    deserializer.end().map_err(|error| not_json(&error))?;
    Ok(value)
}

/// The message of an error about the data. The field says where it is; the line and column of the body say less.
fn without_position(message: &str) -> &str {
    message.rsplit_once(" at line ").map_or(message, |(text, _)| text)
}

/// Whether a body contains too many values, keys included. Nothing is parsed and nothing is allocated.
fn has_too_many_values(bytes: &[u8]) -> bool {
    if bytes.len() <= Limits::MAX_JSON_VALUES {
        return false;
    }
    let (mut values, mut is_string, mut is_escaped) = (0, false, false);
    for byte in bytes {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_string => is_escaped = true,
            b'"' => is_string = !is_string,
            b',' | b':' | b'[' | b'{' if !is_string => values += 1,
            _ => {}
        }
    }
    values > Limits::MAX_JSON_VALUES
}

/// Converts floats such as `3.0` to integers: JSON does not distinguish `3.0` from `3`, but serde does.
pub(crate) fn normalize_integers(value: &mut Value) {
    /// 2^53: up to this value, floats represent every integer exactly.
    const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Some(float) = number.as_f64()
                && float.fract() == 0.0
                && float.abs() <= MAX_EXACT_INTEGER
            {
                *number = serde_json::Number::from(float as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalize_integers),
        Value::Object(entries) => entries.values_mut().for_each(normalize_integers),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_may_be_written_as_floats() {
        let mut value = serde_json::json!({"a": [3428.0, 1.5, -0.0, 1e300], "b": 7});
        normalize_integers(&mut value);
        assert_eq!(value.to_string(), r#"{"a":[3428,1.5,0,1e+300],"b":7}"#);
    }

    #[test]
    fn many_small_values_are_refused_and_long_strings_are_not() {
        let many = format!(r#"{{"list":[{}0]}}"#, "0,".repeat(Limits::MAX_JSON_VALUES));
        assert!(parse_json::<Value>(many.as_bytes()).is_err());
        let long = serde_json::json!({"text": "[,\\\"".repeat(Limits::MAX_JSON_VALUES)}).to_string();
        assert!(parse_json::<Value>(long.as_bytes()).is_ok());
    }
}
