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
mod keeper;
mod remote;

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::repository::{CatalogChange, Repository};
pub(crate) use keeper::Keeper;

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
    keeper: Arc<Keeper>,
    repository: Weak<Repository>,
    thread: Option<JoinHandle<()>>,
}

impl Repository {
    /// Starts to keep the catalogue up to date in the background, with the default timing.
    pub fn watch(self: &Arc<Self>) -> Result<WatchHandle, WatchError> {
        self.watch_with(WatchOptions::default())
    }

    /// The same with a timing of one's own. It returns at once; see [`WatchHandle::mode`] for how it goes.
    pub fn watch_with(self: &Arc<Self>, options: WatchOptions) -> Result<WatchHandle, WatchError> {
        let keeper = Arc::new(Keeper::new(options));
        {
            let mut current = self.lock_keeper();
            if current.is_some() {
                return Err(WatchError::AlreadyWatched);
            }
            *current = Some(keeper.clone());
        }
        let (repository, in_thread) = (Arc::downgrade(self), keeper.clone());
        let thread = std::thread::Builder::new()
            .name("skillbox-watch".to_owned())
            .spawn(move || in_thread.keep(&repository));
        match thread {
            Ok(thread) => Ok(WatchHandle {
                keeper,
                repository: Arc::downgrade(self),
                thread: Some(thread),
            }),
            Err(error) => {
                *self.lock_keeper() = None;
                Err(WatchError::Thread(error))
            }
        }
    }
}

impl WatchHandle {
    /// How changes come to be known at the moment.
    pub fn mode(&self) -> WatchMode {
        self.keeper.mode()
    }

    /// Waits until the watches are set up, or cannot be.
    pub fn wait_until_ready(&self, at_most: Duration) -> WatchMode {
        self.keeper.wait_until_ready(at_most)
    }

    /// Every change from now on, whether the background or a call of [`Repository::refresh`] found it.
    pub fn changes(&self) -> Receiver<CatalogChange> {
        let (sender, receiver) = channel();
        self.keeper.subscribe(sender);
        receiver
    }
}

impl Drop for WatchHandle {
    fn drop(&mut self) {
        if let Some(repository) = self.repository.upgrade() {
            *repository.lock_keeper() = None;
        }
        self.keeper.close();
        if let Some(thread) = self.thread.take() {
            // Its panic was reported when it happened.
            let _ = thread.join();
        }
    }
}
