//! Runs work that waits for the disk outside the threads that serve connections.

use rmcp::ErrorData;
use rmcp::model::ErrorCode;
use skillbox_model::with_causes;

/// Runs blocking work on a thread of its own.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ErrorData> + Send + 'static,
) -> Result<T, ErrorData> {
    let span = tracing::Span::current();
    tokio::task::spawn_blocking(move || span.in_scope(work))
        .await
        .unwrap_or_else(|error| Err(internal_error(&error)))
}

/// The protocol's error for a failure of the server.
pub(crate) fn internal_error(error: &dyn std::error::Error) -> ErrorData {
    ErrorData::new(ErrorCode::INTERNAL_ERROR, with_causes(error), None)
}
