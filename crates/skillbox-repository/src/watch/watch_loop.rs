//! The loop of a watch: it sets up the watches, waits for events and updates the catalog.

use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::directory_watches::DirectoryWatches;
use super::event_queue::EventQueue;
use super::options::{WatchMode, WatchOptions};
use crate::catalog::CatalogChange;
use crate::scan::{CurrentCatalog, SourceUpdate};

/// A source with more polled directories than this is rescanned as a whole.
const MAX_POLLED_PATHS: usize = 64;
/// The maximum number of times that newly watched directories are checked for further new directories. Each check
/// descends one level, and a scan has fewer levels by default.
const MAX_UPDATE_ROUNDS: usize = 16;
/// The pause after a poll is at least this many times as long as the poll, so that polling uses at most 2% of the time.
const POLL_PAUSE_FACTOR: u32 = 50;

/// A watch on one repository, shared by its thread and the callers of a refresh.
#[derive(Debug)]
pub(crate) struct WatchLoop {
    options: WatchOptions,
    events: Arc<EventQueue>,
    state: Mutex<WatchState>,
    ready: Condvar,
    subscribers: Mutex<Vec<Sender<CatalogChange>>>,
}

#[derive(Debug)]
enum WatchState {
    Starting,
    Events(Box<DirectoryWatches>),
    Polling { reason: String },
}

/// What a refresh checks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RefreshScope {
    PathsWithEvents,
    Everything,
}

impl WatchState {
    fn mode(&self) -> WatchMode {
        match self {
            Self::Starting => WatchMode::Starting,
            Self::Events(watches) => WatchMode::Events {
                watched: watches.watched_count(),
                polled: watches.polled().len(),
            },
            Self::Polling { reason } => WatchMode::Polling { reason: reason.clone() },
        }
    }
}

impl WatchLoop {
    pub(super) fn new(options: WatchOptions) -> Self {
        Self {
            options,
            events: Arc::default(),
            state: Mutex::new(WatchState::Starting),
            ready: Condvar::new(),
            subscribers: Mutex::default(),
        }
    }

    pub(super) fn mode(&self) -> WatchMode {
        self.lock_state().mode()
    }

    pub(super) fn wait_until_ready(&self, timeout: Duration) -> WatchMode {
        let is_starting = |state: &mut WatchState| matches!(state, WatchState::Starting);
        let result = self.ready.wait_timeout_while(self.lock_state(), timeout, is_starting);
        result.unwrap_or_else(PoisonError::into_inner).0.mode()
    }

    pub(super) fn subscribe(&self, subscriber: Sender<CatalogChange>) {
        self.lock_subscribers().push(subscriber);
    }

    /// Ends the background thread.
    pub(super) fn close(&self) {
        self.events.close();
    }

    fn lock_state(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_subscribers(&self) -> MutexGuard<'_, Vec<Sender<CatalogChange>>> {
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs on the background thread until the watch or the repository is dropped.
    pub(super) fn run(&self, current: &Weak<CurrentCatalog>) {
        if let Some(current) = current.upgrade() {
            self.set_up_watches(&current);
        }
        let mut poll_interval = self.options.poll_interval;
        while self.events.wait(&self.options, poll_interval) {
            let Some(current) = current.upgrade() else { return };
            let started = Instant::now();
            // The lock is held from taking the events until the catalog includes them, so that a concurrent refresh
            // does not miss them.
            let mut state = self.lock_state();
            self.refresh_catalog(&mut state, &current, RefreshScope::PathsWithEvents);
            drop(state);
            poll_interval = self.options.poll_interval.max(started.elapsed() * POLL_PAUSE_FACTOR);
        }
    }

    /// Watches every scanned directory, or falls back to polling.
    fn set_up_watches(&self, current: &CurrentCatalog) {
        let directories = current.directories();
        let watches = DirectoryWatches::new(&self.events).and_then(|mut watches| {
            watches.add(&directories)?;
            Ok(watches)
        });
        let next = match watches {
            Ok(watches) => WatchState::Events(Box::new(watches)),
            Err(reason) => polling_state(&reason),
        };
        {
            let mut state = self.lock_state();
            *state = next;
            // Changes between the scan and the creation of the watches caused no events.
            let (change, update) = current.rescan();
            self.update_watches_and_notify(&mut state, current, change, update);
        }
        self.ready.notify_all();
    }

    /// Updates the catalog now, without waiting for events to pause.
    pub(crate) fn refresh_now(&self, current: &CurrentCatalog) -> CatalogChange {
        let mut state = self.lock_state();
        let has_all_events = match &mut *state {
            WatchState::Events(watches) => watches.sync(&self.events),
            WatchState::Starting | WatchState::Polling { .. } => false,
        };
        let scope = if has_all_events {
            RefreshScope::PathsWithEvents
        } else {
            RefreshScope::Everything
        };
        self.refresh_catalog(&mut state, current, scope)
    }

    /// Takes the events from the queue and updates the catalog.
    fn refresh_catalog(
        &self,
        state: &mut WatchState,
        current: &CurrentCatalog,
        mut scope: RefreshScope,
    ) -> CatalogChange {
        let batch = self.events.take();
        let mut paths = batch.paths;
        if batch.has_overflowed {
            scope = RefreshScope::Everything;
        }
        let mut polled: Vec<PathBuf> = Vec::new();
        if let WatchState::Events(watches) = state {
            let lost = match batch.has_overflowed {
                true => current.directories(),
                false => current.directories_below(&batch.lost_watches),
            };
            match watches.renew(&lost) {
                Ok(_) => polled = watches.polled(),
                Err(reason) => *state = polling_state(&reason),
            }
        }
        if !matches!(state, WatchState::Events(_)) {
            scope = RefreshScope::Everything;
        }
        paths.extend(polled.iter().cloned());
        let (change, update) = current.rescan_paths_or_source(&paths, |root| {
            let in_source = polled.iter().filter(|path| path.starts_with(root));
            scope == RefreshScope::Everything || in_source.count() > MAX_POLLED_PATHS
        });
        self.update_watches_and_notify(state, current, change, update)
    }

    /// Adds and removes watches according to an update, checks the directories with new watches, and repeats this until
    /// there are no more new watches. Then notifies the subscribers.
    fn update_watches_and_notify(
        &self,
        state: &mut WatchState,
        current: &CurrentCatalog,
        mut change: CatalogChange,
        mut update: SourceUpdate,
    ) -> CatalogChange {
        for _ in 0..MAX_UPDATE_ROUNDS {
            let WatchState::Events(watches) = state else { break };
            let removed = update.removed_dirs.iter();
            watches.remove(removed.filter(|dir| !current.contains_directory(dir)));
            if update.scanned_dirs.is_empty() {
                break;
            }
            match watches.add(&update.scanned_dirs) {
                Ok(0) => break,
                Ok(_) => {}
                Err(reason) => {
                    *state = polling_state(&reason);
                    break;
                }
            }
            let (later_change, later_update) = current.rescan_paths(&update.scanned_dirs);
            change.append(later_change);
            update = later_update;
        }
        if !change.is_empty() {
            tracing::info!(
                added = change.added.len(),
                changed = change.changed.len(),
                removed = change.removed.len(),
                "skills changed on disk"
            );
            self.lock_subscribers()
                .retain(|subscriber| subscriber.send(change.clone()).is_ok());
        }
        change
    }
}

fn polling_state(reason: &notify::Error) -> WatchState {
    let reason = reason.to_string();
    tracing::warn!(reason, "file watches are not available; skills are polled instead");
    WatchState::Polling { reason }
}
