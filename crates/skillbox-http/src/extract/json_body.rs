//! Reads and parses JSON bodies within their size limit and timeout.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use serde::de::DeserializeOwned;
use serde_json::Value;
use skillbox_model::ErrorCode;

use crate::error::ApiError;
use crate::limits::Limits;

/// The JSON body of a request, or `None` if the body is empty.
pub(crate) async fn read_json(request: Request, limit: usize) -> Result<Option<Value>, ApiError> {
    let (head, body) = request.into_parts();
    let bytes = read_body(body, limit).await?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if !is_json(&head.headers) {
        let error = ApiError::invalid("the content type of the body is not application/json");
        return Err(error.with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
    }
    let mut value: Value = serde_json::from_slice(&bytes)
        .map_err(|error| ApiError::invalid(format!("the body is not valid JSON: {error}")))?;
    normalize_integers(&mut value);
    Ok(Some(value))
}

async fn read_body(body: Body, limit: usize) -> Result<bytes::Bytes, ApiError> {
    let collecting = Limited::new(body, limit).collect();
    let collected = tokio::time::timeout(Limits::BODY_TIMEOUT, collecting)
        .await
        .map_err(|_| {
            let error = ApiError::invalid("timed out waiting for the body");
            error.with_status(StatusCode::REQUEST_TIMEOUT)
        })?;
    match collected {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(body_too_large(limit as u64)),
        Err(error) => Err(ApiError::invalid(format!("cannot read the body: {error}"))),
    }
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

/// Converts floats such as `3.0` to integers: JSON does not distinguish `3.0` from `3`, but serde does.
fn normalize_integers(value: &mut Value) {
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

/// Deserializes a JSON value; an error names the field.
pub(crate) fn parse_value<T: DeserializeOwned>(value: Value) -> Result<T, ApiError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let field = error.path().to_string();
        let invalid = ApiError::invalid(error.into_inner().to_string());
        if field == "." {
            invalid
        } else {
            invalid.with_field(field)
        }
    })
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
}
