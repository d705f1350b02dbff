//! Path parameters as strings.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;

use crate::error::ApiError;

/// All path parameters, in the order of the path.
pub(crate) struct PathParams(Vec<String>);

impl PathParams {
    /// The first parameter, or an empty string.
    pub(crate) fn first(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }

    /// The last parameter, or an empty string.
    pub(crate) fn last(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PathParams {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let raw = RawPathParams::from_request_parts(parts, state)
            .await
            .map_err(|error| ApiError::invalid(format!("the path is not valid UTF-8: {error}")))?;
        Ok(Self(raw.iter().map(|(_, value)| value.to_owned()).collect()))
    }
}
