//! The error response of every request that fails.

use std::error::Error;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use skillbox_artifacts::StoreError;
use skillbox_model::{ErrorBody, ErrorCode, with_causes};
use skillbox_runtime::session::SessionError;
use skillbox_runtime::{Dialect, RunError, ToolError};

/// The value of `Retry-After` in 503 responses.
const RETRY_AFTER_SECONDS: &str = "1";

/// An error with its HTTP status.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    pub status: StatusCode,
    pub body: ErrorBody,
}

/// The body of an error response.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Error")]
pub(crate) struct ErrorResponse<'a> {
    /// What went wrong.
    pub error: &'a ErrorBody,
}

impl ApiError {
    /// An error with the status of its code.
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        ErrorBody::new(code, message).into()
    }

    /// An invalid request.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidRequest, message)
    }

    /// The same error with the name of a field.
    pub(crate) fn with_field(mut self, field: impl Into<String>) -> Self {
        self.body = self.body.with_field(field);
        self
    }

    /// The same error with another status.
    pub(crate) fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// The same error with a specific hint.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.body.hint = Some(hint.into());
        self
    }

    /// The server cannot accept more work now.
    pub(crate) fn busy(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Busy, message)
    }

    /// An internal failure.
    pub(crate) fn internal(error: &dyn Error) -> Self {
        Self::new(ErrorCode::Internal, with_causes(error))
    }

    /// The error of a tool call, worded in its dialect.
    pub(crate) fn from_tool_error(error: &ToolError, dialect: Dialect) -> Self {
        error.body(dialect).into()
    }
}

/// The most specific HTTP status for an error code.
fn status_for(code: ErrorCode) -> StatusCode {
    use ErrorCode as Code;
    match code {
        Code::UnknownSkill
        | Code::UnknownDoc
        | Code::UnknownTool
        | Code::InputMissing
        | Code::ArtifactMissing
        | Code::SessionUnknown
        | Code::RunUnknown
        | Code::NotFound => StatusCode::NOT_FOUND,
        Code::RunGone => StatusCode::GONE,
        Code::Unauthorized => StatusCode::UNAUTHORIZED,
        Code::ManualOnly | Code::ModelOnly | Code::HostNotAllowed | Code::ToolNotAllowed => StatusCode::FORBIDDEN,
        Code::SkillDisabled | Code::NotLoaded | Code::LoadLimit | Code::AlreadyExists | Code::Cancelled => {
            StatusCode::CONFLICT
        }
        // This host cannot execute the request, but may execute a different one.
        Code::SkillUnreadable
        | Code::ProfileInvalid
        | Code::IsolationUnavailable
        | Code::ExecutorUnavailable
        | Code::ExecutorOutdated
        | Code::ImageMissing => StatusCode::UNPROCESSABLE_ENTITY,
        Code::Busy => StatusCode::SERVICE_UNAVAILABLE,
        Code::ExecutorLost | Code::ExecutorFull | Code::Storage | Code::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    }
}

impl From<ErrorBody> for ApiError {
    fn from(body: ErrorBody) -> Self {
        Self {
            status: status_for(body.code),
            body,
        }
    }
}

impl From<RunError> for ApiError {
    fn from(error: RunError) -> Self {
        error.body().into()
    }
}

impl From<SessionError> for ApiError {
    fn from(error: SessionError) -> Self {
        RunError::from(error).into()
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        RunError::from(error).into()
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let text = serde_json::to_vec(&ErrorResponse { error: &self.body }).unwrap_or_default();
        let mut response = (self.status, text).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        match self.status {
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_SECONDS));
            }
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            _ => {}
        }
        if self.status.is_server_error() && self.status != StatusCode::SERVICE_UNAVAILABLE {
            tracing::error!(code = self.body.code.as_str(), "{}", self.body.message);
        }
        response
    }
}
