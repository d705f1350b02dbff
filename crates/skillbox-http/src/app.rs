//! The state that all requests share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use skillbox_runtime::{AgentOptions, Runtime};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::body_budget::BodyBudget;
use crate::error::ApiError;
use crate::limits::Limits;
use crate::listen::ListenAddress;
use crate::metrics::Metrics;
use crate::runs::RunQueue;
use crate::tenant::Tenants;

/// The state behind every route.
#[derive(Debug)]
pub(crate) struct App {
    /// The host's own runtime, whose catalog all tenants use.
    pub runtime: Arc<Runtime>,
    pub tenants: Reloadable<Tenants>,
    /// The address that the server is bound to, once it serves.
    pub served_address: OnceLock<ListenAddress>,
    /// The memory for request bodies.
    pub body_budget: BodyBudget,
    /// The options of agent sessions; a request may choose another dialect.
    pub agent_options: AgentOptions,
    pub limits: Reloadable<Limits>,
    pub run_queue: RunQueue,
    /// One permit for each concurrent upload.
    pub upload_permits: Arc<Semaphore>,
    pub metrics: Metrics,
    /// Cancelled when the server shuts down: no new work starts, and event streams end.
    pub stopping: CancellationToken,
    /// Cancelled when the last run of a server that shuts down has ended: connections end.
    pub drained: CancellationToken,
    /// Cancelled when the grace period after a shutdown signal is over: remaining runs and tool calls are killed.
    pub grace_period_over: CancellationToken,
    /// The tasks of all active runs and tool calls.
    pub work: TaskTracker,
    /// The OpenAPI document as JSON.
    pub openapi_json: bytes::Bytes,
    /// The OpenAPI document as an HTML page.
    pub openapi_page: bytes::Bytes,
}

/// A value that a reload replaces as a whole. Work that has started keeps the value of its start.
#[derive(Debug)]
pub(crate) struct Reloadable<T>(RwLock<Arc<T>>);

impl<T> Reloadable<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(RwLock::new(Arc::new(value)))
    }

    /// The current value.
    pub(crate) fn get(&self) -> Arc<T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn replace(&self, value: T) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(value);
    }
}

/// Tells blocking work that the request it serves is gone: the server drops the request's future when its client
/// disconnects, and with it this value.
#[derive(Default)]
pub(crate) struct RequestGone(Arc<AtomicBool>);

impl RequestGone {
    /// A function that says whether the request is gone.
    pub(crate) fn check(&self) -> impl Fn() -> bool + Send + 'static {
        let gone = self.0.clone();
        move || gone.load(Ordering::Relaxed)
    }
}

impl Drop for RequestGone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs blocking work, such as disk access, on a separate thread and waits for its result.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let span = tracing::Span::current();
    let result = tokio::task::spawn_blocking(move || span.in_scope(work)).await;
    result.unwrap_or_else(|panic| Err(ApiError::internal(&panic)))
}
