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
    pub options: AgentOptions,
    pub limits: Limits,
    pub queue: RunQueue,
    pub uploads: Arc<Semaphore>,
    pub metrics: Metrics,
    /// Cancelled when the server shuts down: no new work starts, and event streams end.
    pub stopping: CancellationToken,
    /// Cancelled when the grace period of running work is over.
    pub killing: CancellationToken,
    /// All active runs and tool calls.
    pub work: TaskTracker,
    /// The OpenAPI document as JSON.
    pub openapi: bytes::Bytes,
    /// The OpenAPI document as an HTML page.
    pub docs: bytes::Bytes,
}

/// Runs blocking work (disk, scripts) outside the threads that serve connections.
pub(crate) async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let span = tracing::Span::current();
    let done = tokio::task::spawn_blocking(move || span.in_scope(work)).await;
    done.unwrap_or_else(|panic| Err(ApiError::internal(&panic)))
}
