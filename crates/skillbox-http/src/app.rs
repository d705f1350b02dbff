//! What all requests share.

use std::sync::Arc;

use skillbox_runtime::{AgentOptions, Runtime};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::ApiError;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::runs::Gate;
use crate::tenant::Tenants;

/// The state behind every route.
#[derive(Debug)]
pub(crate) struct App {
    /// The host's own runtime: its catalogue is everybody's.
    pub runtime: Arc<Runtime>,
    pub tenants: Tenants,
    /// How agents' sessions are made; a request may choose another dialect.
    pub options: AgentOptions,
    pub limits: Limits,
    pub gate: Gate,
    pub uploads: Arc<Semaphore>,
    pub metrics: Metrics,
    /// Thrown when the server is to end: nothing new is begun, and streams end.
    pub stopping: CancellationToken,
    /// Thrown when what still runs has had its time.
    pub killing: CancellationToken,
    /// Every run that was begun.
    pub work: TaskTracker,
    /// The description of the API, written once.
    pub openapi: bytes::Bytes,
    /// The same for people.
    pub docs: bytes::Bytes,
}

/// Does work that waits for the disk or a script, away from the threads that serve connections.
pub(crate) async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let span = tracing::Span::current();
    let done = tokio::task::spawn_blocking(move || span.in_scope(work)).await;
    done.unwrap_or_else(|panic| Err(ApiError::internal(&panic)))
}
