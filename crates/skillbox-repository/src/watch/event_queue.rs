//! Collects file events until they are processed.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Event, EventKind};

use super::options::WatchOptions;

/// The maximum number of paths in a batch. With more, a rescan of everything is cheaper.
const MAX_PATHS: usize = 4_096;

/// A queue of file events.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    state: Mutex<QueueState>,
    updated: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    batch: EventBatch,
    first_event: Option<Instant>,
    last_event: Option<Instant>,
    /// The highest cookie that was received.
    received_cookie: u64,
    is_closed: bool,
}

/// The events since the last batch was taken.
#[derive(Debug, Default)]
pub(super) struct EventBatch {
    pub(super) paths: HashSet<PathBuf>,
    /// Paths that were removed or renamed. Their watches are lost, even if the paths exist again.
    pub(super) lost_watches: HashSet<PathBuf>,
    /// Whether the kernel lost events, or there were too many of them.
    pub(super) has_overflowed: bool,
}

impl EventQueue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event. The watcher calls this on its own thread.
    pub(super) fn push(&self, event: notify::Result<Event>) {
        let mut state = self.lock();
        match event {
            Ok(event) if event.need_rescan() => state.batch.has_overflowed = true,
            Ok(event) if is_read_access(&event.kind) => return,
            Ok(event) => {
                if matches!(
                    event.kind,
                    EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_))
                ) {
                    state.batch.lost_watches.extend(event.paths.iter().cloned());
                }
                state.batch.paths.extend(event.paths);
            }
            // After an error of the watcher, only a rescan of everything is reliable.
            Err(error) => {
                tracing::debug!(%error, "a file event was lost");
                state.batch.has_overflowed = true;
            }
        }
        if state.batch.paths.len() > MAX_PATHS {
            state.batch = EventBatch {
                has_overflowed: true,
                ..EventBatch::default()
            };
        }
        let now = Instant::now();
        state.first_event.get_or_insert(now);
        state.last_event = Some(now);
        self.updated.notify_all();
    }

    /// Records that a cookie was received.
    pub(super) fn record_cookie(&self, cookie: u64) {
        let mut state = self.lock();
        state.received_cookie = state.received_cookie.max(cookie);
        self.updated.notify_all();
    }

    /// Waits for a cookie, and returns whether it was received.
    pub(super) fn wait_for_cookie(&self, cookie: u64, timeout: Duration) -> bool {
        let is_missing = |state: &mut QueueState| state.received_cookie < cookie;
        let result = self.updated.wait_timeout_while(self.lock(), timeout, is_missing);
        result.unwrap_or_else(PoisonError::into_inner).0.received_cookie >= cookie
    }

    /// Takes the events so far, without waiting.
    pub(super) fn take(&self) -> EventBatch {
        let mut state = self.lock();
        state.first_event = None;
        state.last_event = None;
        std::mem::take(&mut state.batch)
    }

    /// Waits until events arrive and then pause, or until `poll_interval` has passed. Returns false if the queue is
    /// closed.
    pub(super) fn wait(&self, options: &WatchOptions, poll_interval: Duration) -> bool {
        let poll_at = Instant::now() + poll_interval;
        let mut state = self.lock();
        loop {
            if state.is_closed {
                return false;
            }
            let now = Instant::now();
            let wake_at = match (state.first_event, state.last_event) {
                (Some(first), Some(last)) => (last + options.quiet_period).min(first + options.max_delay),
                _ => poll_at,
            };
            if now >= wake_at {
                return true;
            }
            let result = self.updated.wait_timeout(state, wake_at - now);
            state = result.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Closes the queue and wakes all waiting threads.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.updated.notify_all();
    }
}

/// Whether a file was only opened or read. The scan itself causes such events.
fn is_read_access(kind: &EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => false,
        EventKind::Access(_) => true,
        _ => false,
    }
}
