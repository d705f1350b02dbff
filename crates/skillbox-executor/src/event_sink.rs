//! Where the events of a run go.

use skillbox_model::RunEvent;

/// Somebody who listens to a run, or nobody: then no event is even made.
pub struct EventSink<'a>(Option<&'a mut (dyn FnMut(RunEvent) + Send)>);

impl<'a> EventSink<'a> {
    /// Nobody listens.
    pub fn silent() -> Self {
        Self(None)
    }

    /// Every event goes to `listener`, in the thread of the run.
    pub fn to(listener: &'a mut (dyn FnMut(RunEvent) + Send)) -> Self {
        Self(Some(listener))
    }

    /// Tells what happened.
    pub fn emit(&mut self, event: impl FnOnce() -> RunEvent) {
        if let Some(listener) = &mut self.0 {
            listener(event());
        }
    }
}

impl std::fmt::Debug for EventSink<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let listens = self.0.is_some();
        f.debug_struct("EventSink").field("listens", &listens).finish()
    }
}
