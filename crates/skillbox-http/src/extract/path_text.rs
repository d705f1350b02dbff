//! The variable part of a path, as text.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;

use crate::error::ApiError;

/// Every variable part, in the order of the path.
pub(crate) struct PathText(Vec<String>);

impl PathText {
    /// The first, or nothing where the path has none.
    pub(crate) fn first(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }

    /// The last.
    pub(crate) fn last(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PathText {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let raw = RawPathParams::from_request_parts(parts, state)
            .await
            .map_err(|error| ApiError::invalid(format!("the path is not text: {error}")))?;
        Ok(Self(raw.iter().map(|(_, value)| value.to_owned()).collect()))
    }
}
