//! The life of a watch: it sets the watches up, gathers events, and brings the catalogue up to date.

use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::feed::Feed;
use super::inbox::Inbox;
use super::{WatchMode, WatchOptions};
use crate::refresh::Touched;
use crate::repository::{CatalogChange, Repository};

/// A source with more unwatched places than this is looked at as a whole.
const MANY_UNWATCHED: usize = 64;
/// New directories appear below new directories; nobody nests deeper than a scan goes.
const MAX_SETTLING_TURNS: usize = 16;

/// A watch on one repository, shared by its thread and by whoever refreshes.
#[derive(Debug)]
pub(crate) struct Keeper {
    options: WatchOptions,
    inbox: Arc<Inbox>,
    state: Mutex<State>,
    ready: Condvar,
    subscribers: Mutex<Vec<Sender<CatalogChange>>>,
}

#[derive(Debug)]
enum State {
    Starting,
    Events(Box<Feed>),
    Polling { reason: String },
}

/// How much is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    AtWhatIsTold,
    AtEverything,
}

impl State {
    fn mode(&self) -> WatchMode {
        match self {
            Self::Starting => WatchMode::Starting,
            Self::Events(feed) => WatchMode::Events {
                watched: feed.watched(),
                polled: feed.unwatched().len(),
            },
            Self::Polling { reason } => WatchMode::Polling { reason: reason.clone() },
        }
    }
}

impl Keeper {
    pub(super) fn new(options: WatchOptions) -> Self {
        Self {
            options,
            inbox: Arc::default(),
            state: Mutex::new(State::Starting),
            ready: Condvar::new(),
            subscribers: Mutex::default(),
        }
    }

    pub(super) fn mode(&self) -> WatchMode {
        self.lock().mode()
    }

    pub(super) fn wait_until_ready(&self, at_most: Duration) -> WatchMode {
        let starting = |state: &mut State| matches!(state, State::Starting);
        let waited = self.ready.wait_timeout_while(self.lock(), at_most, starting);
        waited.unwrap_or_else(PoisonError::into_inner).0.mode()
    }

    pub(super) fn subscribe(&self, subscriber: Sender<CatalogChange>) {
        self.lock_subscribers().push(subscriber);
    }

    /// Ends the background thread.
    pub(super) fn close(&self) {
        self.inbox.close();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_subscribers(&self) -> MutexGuard<'_, Vec<Sender<CatalogChange>>> {
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The life of the background thread.
    pub(super) fn keep(&self, repository: &Weak<Repository>) {
        if let Some(repository) = repository.upgrade() {
            self.start(&repository);
        }
        let mut pause_between_polls = self.options.poll;
        while self.inbox.wait(&self.options, pause_between_polls) {
            let Some(repository) = repository.upgrade() else { return };
            let started = Instant::now();
            // Mail is taken under the lock: whoever holds it next sees a catalogue in which it has been acted upon.
            let mut state = self.lock();
            self.act_upon(&mut state, &repository, Look::AtWhatIsTold);
            drop(state);
            // Looking takes at most a fiftieth of the time, however much there is to look at.
            pause_between_polls = self.options.poll.max(started.elapsed() * 50);
        }
    }

    /// Sets a watch on every directory that the scan has looked at.
    fn start(&self, repository: &Repository) {
        let directories: Vec<PathBuf> = repository.directories();
        let started = Feed::new(&self.inbox).and_then(|mut feed| {
            feed.attach(&directories)?;
            Ok(feed)
        });
        let next = match started {
            Ok(feed) => State::Events(Box::new(feed)),
            Err(reason) => polling(&reason),
        };
        {
            let mut state = self.lock();
            *state = next;
            // What changed between the scan and the watches made no events.
            let (change, touched) = repository.update(|source, options, touched| source.rescan(options, touched));
            self.settle(&mut state, repository, change, touched);
        }
        self.ready.notify_all();
    }

    /// Brings the catalogue up to date now, for a caller who will not wait for events to pause.
    pub(crate) fn refresh_now(&self, repository: &Repository) -> CatalogChange {
        let mut state = self.lock();
        let all_came = match &mut *state {
            State::Events(feed) => feed.sync(&self.inbox),
            State::Starting | State::Polling { .. } => false,
        };
        // When the kernel's events cannot be waited for, looking at everything is still right.
        let look = if all_came {
            Look::AtWhatIsTold
        } else {
            Look::AtEverything
        };
        self.act_upon(&mut state, repository, look)
    }

    /// Takes the mail and brings the catalogue up to date with it.
    fn act_upon(&self, state: &mut State, repository: &Repository, mut look: Look) -> CatalogChange {
        let mail = self.inbox.take();
        let mut paths = mail.paths;
        if mail.overflowed {
            look = Look::AtEverything;
        }
        let mut unwatched = Vec::new();
        if let State::Events(feed) = state {
            let lost = match mail.overflowed {
                true => repository.directories(),
                false => repository.directories_below(&mail.unwatched),
            };
            match feed.attach_again(&lost) {
                Ok(_) => unwatched = feed.unwatched(),
                Err(reason) => *state = polling(&reason),
            }
        }
        if !matches!(state, State::Events(_)) {
            look = Look::AtEverything;
        }
        paths.extend(unwatched.iter().cloned());
        let (change, touched) = repository.update(|source, options, touched| {
            let root = &source.info.root;
            let many = unwatched
                .iter()
                .filter(|path| path.starts_with(root))
                .nth(MANY_UNWATCHED);
            if look == Look::AtEverything || many.is_some() {
                source.rescan(options, touched);
            } else {
                // The source itself may have been replaced, or may have come at last.
                let paths: Vec<PathBuf> = std::iter::once(root).chain(&paths).cloned().collect();
                source.recheck(&paths, options, touched);
            }
        });
        self.settle(state, repository, change, touched)
    }

    /// Moves the watches along with the directories, until a look at the new ones finds nothing newer still.
    fn settle(
        &self,
        state: &mut State,
        repository: &Repository,
        mut change: CatalogChange,
        mut touched: Touched,
    ) -> CatalogChange {
        for _ in 0..MAX_SETTLING_TURNS {
            let State::Events(feed) = state else { break };
            feed.detach(touched.went.iter().filter(|dir| !repository.looks_into(dir)));
            if touched.came.is_empty() {
                break;
            }
            match feed.attach(&touched.came) {
                Ok(0) => break,
                Ok(_) => {}
                Err(reason) => {
                    *state = polling(&reason);
                    break;
                }
            }
            let (more, next) = repository.refresh_paths(&touched.came);
            change.append(more);
            touched = next;
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

fn polling(reason: &notify::Error) -> State {
    let reason = reason.to_string();
    tracing::warn!(
        reason,
        "no file watches; skills are looked at from time to time instead"
    );
    State::Polling { reason }
}
