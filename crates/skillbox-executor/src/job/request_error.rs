//! An invalid field of a request.

use skillbox_model::{ErrorBody, ErrorCode, RelPathError};

/// Why a request is refused before anything runs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct RequestError {
    /// The field, such as `inputs[0].to`.
    pub field: String,
    /// The stable code.
    pub code: ErrorCode,
    /// What is wrong with it.
    pub message: String,
    /// A hint for the caller, if there is one.
    pub hint: Option<String>,
}

impl RequestError {
    /// A field that does not have the documented form.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(field, ErrorCode::InvalidRequest, message)
    }

    /// An error with the given code.
    pub fn new(field: impl Into<String>, code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            code,
            message: message.into(),
            hint: None,
        }
    }

    /// Adds a hint.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// A path that does not parse. The code is `PathEscape` if the path leaves its root.
    pub fn invalid_path(field: impl Into<String>, error: &RelPathError) -> Self {
        let code = if error.is_escape() {
            ErrorCode::PathEscape
        } else {
            ErrorCode::InvalidRequest
        };
        Self::new(field, code, error.to_string())
    }

    /// The error object of the response.
    pub fn to_body(&self) -> ErrorBody {
        let mut body = ErrorBody::new(self.code, self.message.clone()).with_field(&self.field);
        if self.hint.is_some() {
            body.hint.clone_from(&self.hint);
        }
        body
    }
}
