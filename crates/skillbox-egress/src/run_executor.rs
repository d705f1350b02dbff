//! Starts the tasks of HTTP/2 so that they end with the run.

use std::future::Future;
use std::sync::Arc;

use crate::run_state::RunState;

/// Starts tasks that end with the run.
#[derive(Clone, Debug)]
pub(crate) struct RunExecutor(pub Arc<RunState>);

impl<F> hyper::rt::Executor<F> for RunExecutor
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, task: F) {
        self.0.spawn(task);
    }
}
