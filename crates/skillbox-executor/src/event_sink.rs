//! The receiver of a run's events.

use skillbox_model::RunEvent;

/// Passes events to an optional listener. Without a listener, events are not constructed.
pub struct EventSink<'a>(Option<&'a mut (dyn FnMut(RunEvent) + Send)>);

impl<'a> EventSink<'a> {
    /// A sink without a listener.
    pub fn silent() -> Self {
        Self(None)
    }

    /// A sink that calls `listener` for every event, on the thread of the run.
    pub fn with_listener(listener: &'a mut (dyn FnMut(RunEvent) + Send)) -> Self {
        Self(Some(listener))
    }

    /// Sends an event, if there is a listener.
    pub fn emit(&mut self, event: impl FnOnce() -> RunEvent) {
        if let Some(listener) = &mut self.0 {
            listener(event());
        }
    }
}

impl std::fmt::Debug for EventSink<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let has_listener = self.0.is_some();
        f.debug_struct("EventSink")
            .field("has_listener", &has_listener)
            .finish()
    }
}
