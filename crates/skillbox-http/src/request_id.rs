//! The id of the request that is being handled, for the log events of what it starts.

use std::future::Future;
use std::sync::Arc;

tokio::task_local! {
    static CURRENT: Arc<str>;
}

/// Handles a request under its id.
pub(crate) async fn with_request_id<T>(id: &str, handle: impl Future<Output = T>) -> T {
    CURRENT.scope(id.into(), handle).await
}

/// The id of the request that the current task handles.
pub(crate) fn current_request_id() -> Option<Arc<str>> {
    CURRENT.try_with(Arc::clone).ok()
}
