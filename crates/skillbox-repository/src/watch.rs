//! Keeping a catalogue up to date without being asked.
//!
//! The kernel tells which names changed in the directories of the sources (the `notify` crate), and only these are
//! looked at again. Events are gathered until they pause, so that an unpacked archive is one change. The gathering
//! is ours rather than a debouncer crate's because [`Repository::refresh`] must not wait for a pause: at the
//! start of a run it takes what has come so far, after making sure that everything has come.
//!
//! Where the kernel has no watches left, where a file system is remote (its other users' changes make no events), or
//! where one directory is reached by two paths (events come for one of them), the places concerned are looked at
//! from time to time, which costs one `stat` each.

mod cookie;
mod feed;
mod inbox;
mod remote;

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::refresh::Touched;
use crate::repository::{CatalogChange, Repository};
use feed::Feed;
use inbox::Inbox;

/// A source with more unwatched places than this is looked at as a whole.
const MANY_UNWATCHED: usize = 64;
/// New directories appear below new directories; nobody nests deeper than a scan goes.
const MAX_SETTLING_TURNS: usize = 16;

/// When a watch looks.
#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// How long events must pause before they are acted upon.
    pub pause: Duration,
    /// How long they are gathered at most.
    pub patience: Duration,
    /// How often places without events are looked at; large ones less often.
    pub poll: Duration,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            pause: Duration::from_millis(100),
            patience: Duration::from_secs(1),
            poll: Duration::from_secs(2),
        }
    }
}

/// How changes come to be known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchMode {
    /// Watches are being set up; every refresh looks at everything.
    Starting,
    /// The kernel tells.
    Events {
        /// Directories with a watch.
        watched: usize,
        /// Directories that are looked at from time to time instead.
        polled: usize,
    },
    /// Everything is looked at from time to time.
    Polling {
        /// Why the kernel does not tell.
        reason: String,
    },
}

/// Why a watch did not start.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// One watch is enough for a repository.
    #[error("the repository is being watched already")]
    AlreadyWatched,
    /// The thread could not be started.
    #[error("the watching thread did not start")]
    Thread(#[source] std::io::Error),
}

/// Keeps the watch alive; dropping it ends the watch.
#[derive(Debug)]
pub struct WatchHandle {
    watch: Arc<Watch>,
    repository: Weak<Repository>,
    thread: Option<JoinHandle<()>>,
}

/// A watch on one repository.
#[derive(Debug)]
pub(crate) struct Watch {
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

impl Repository {
    /// Starts to keep the catalogue up to date in the background, with the default timing.
    pub fn watch(self: &Arc<Self>) -> Result<WatchHandle, WatchError> {
        self.watch_with(WatchOptions::default())
    }

    /// The same with a timing of one's own. It returns at once; see [`WatchHandle::mode`] for how it goes.
    pub fn watch_with(self: &Arc<Self>, options: WatchOptions) -> Result<WatchHandle, WatchError> {
        let watch = Arc::new(Watch {
            options,
            inbox: Arc::default(),
            state: Mutex::new(State::Starting),
            ready: Condvar::new(),
            subscribers: Mutex::default(),
        });
        {
            let mut current = self.lock_watch();
            if current.is_some() {
                return Err(WatchError::AlreadyWatched);
            }
            *current = Some(watch.clone());
        }
        let (repository, in_thread) = (Arc::downgrade(self), watch.clone());
        let thread = std::thread::Builder::new()
            .name("skillbox-watch".to_owned())
            .spawn(move || in_thread.keep_watching(&repository));
        match thread {
            Ok(thread) => Ok(WatchHandle {
                watch,
                repository: Arc::downgrade(self),
                thread: Some(thread),
            }),
            Err(error) => {
                *self.lock_watch() = None;
                Err(WatchError::Thread(error))
            }
        }
    }
}

impl WatchHandle {
    /// How changes come to be known at the moment.
    pub fn mode(&self) -> WatchMode {
        self.watch.lock().mode()
    }

    /// Waits until the watches are set up, or cannot be.
    pub fn wait_until_ready(&self, at_most: Duration) -> WatchMode {
        let starting = |state: &mut State| matches!(state, State::Starting);
        let waited = self
            .watch
            .ready
            .wait_timeout_while(self.watch.lock(), at_most, starting);
        waited.unwrap_or_else(PoisonError::into_inner).0.mode()
    }

    /// Every change from now on, whether the background or a call of [`Repository::refresh`] found it.
    pub fn changes(&self) -> Receiver<CatalogChange> {
        let (sender, receiver) = channel();
        self.watch.lock_subscribers().push(sender);
        receiver
    }
}

impl Drop for WatchHandle {
    fn drop(&mut self) {
        if let Some(repository) = self.repository.upgrade() {
            *repository.lock_watch() = None;
        }
        self.watch.inbox.close();
        if let Some(thread) = self.thread.take() {
            // Its panic was reported when it happened.
            let _ = thread.join();
        }
    }
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

impl Watch {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_subscribers(&self) -> MutexGuard<'_, Vec<Sender<CatalogChange>>> {
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The life of the background thread.
    fn keep_watching(&self, repository: &Weak<Repository>) {
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
