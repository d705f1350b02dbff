//! The state that all requests share.

use std::sync::Arc;

use skillbox_runtime::{AgentOptions, Runtime};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::ApiError;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::runs::RunQueue;
use crate::tenant::Tenants;

/// The state behind every route.
#[derive(Debug)]
pub(crate) struct App {
    /// The host's own runtime, whose catalog all tenants use.
    pub runtime: Arc<Runtime>,
    pub tenants: Tenants,
    /// The options of agent sessions; a request may choose another dialect.
    pub agent_options: AgentOptions,
    pub limits: Limits,
    pub run_queue: RunQueue,
    /// One permit for each concurrent upload.
    pub upload_permits: Arc<Semaphore>,
    pub metrics: Metrics,
    /// Cancelled when the server shuts down: no new work starts, and event streams end.
    pub stopping: CancellationToken,
    /// Cancelled when the grace period after a shutdown signal is over: remaining runs and tool calls are killed.
    pub killing: CancellationToken,
    /// The tasks of all active runs and tool calls.
    pub work: TaskTracker,
    /// The OpenAPI document as JSON.
    pub openapi_json: bytes::Bytes,
    /// The OpenAPI document as an HTML page.
    pub openapi_page: bytes::Bytes,
}

/// Runs blocking work, such as disk access, on a separate thread and waits for its result.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let span = tracing::Span::current();
    let result = tokio::task::spawn_blocking(move || span.in_scope(work)).await;
    result.unwrap_or_else(|panic| Err(ApiError::internal(&panic)))
}
