//! Starts and ends a watch.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::options::{WatchMode, WatchOptions};
use super::watch_loop::WatchLoop;
use crate::catalog::CatalogChange;
use crate::scan::CurrentCatalog;

/// Why a watch did not start.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// A repository can have only one watch.
    #[error("the repository is already being watched")]
    AlreadyWatched,
    /// The thread could not be started.
    #[error("the watch thread did not start")]
    Thread(#[source] std::io::Error),
}

/// Holds the watch of a repository, if it has one.
#[derive(Debug, Default)]
pub(crate) struct ActiveWatch(Mutex<Option<Arc<WatchLoop>>>);

impl ActiveWatch {
    pub(crate) fn current(&self) -> Option<Arc<WatchLoop>> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<WatchLoop>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running watch, which ends when the handle is dropped.
#[derive(Debug)]
pub struct WatchHandle {
    watch_loop: Arc<WatchLoop>,
    active_watch: Arc<ActiveWatch>,
    thread: Option<JoinHandle<()>>,
}

impl WatchHandle {
    pub(crate) fn start(
        current: &Arc<CurrentCatalog>,
        active_watch: &Arc<ActiveWatch>,
        options: WatchOptions,
    ) -> Result<Self, WatchError> {
        let watch_loop = Arc::new(WatchLoop::new(options));
        {
            let mut watch = active_watch.lock();
            if watch.is_some() {
                return Err(WatchError::AlreadyWatched);
            }
            *watch = Some(watch_loop.clone());
        }
        let (catalog, background_loop) = (Arc::downgrade(current), watch_loop.clone());
        let thread = std::thread::Builder::new()
            .name("skillbox-watch".to_owned())
            .spawn(move || background_loop.run(&catalog));
        match thread {
            Ok(thread) => Ok(Self {
                watch_loop,
                active_watch: active_watch.clone(),
                thread: Some(thread),
            }),
            Err(error) => {
                *active_watch.lock() = None;
                Err(WatchError::Thread(error))
            }
        }
    }

    /// How changes are detected at the moment.
    pub fn mode(&self) -> WatchMode {
        self.watch_loop.mode()
    }

    /// Waits until the watches are set up or have failed, and returns the mode.
    pub fn wait_until_ready(&self, timeout: Duration) -> WatchMode {
        self.watch_loop.wait_until_ready(timeout)
    }

    /// Returns a receiver of all later changes, whether the background thread or
    /// [`Repository::refresh`](crate::Repository::refresh) detects them.
    pub fn changes(&self) -> Receiver<CatalogChange> {
        let (sender, receiver) = channel();
        self.watch_loop.subscribe(sender);
        receiver
    }
}

impl Drop for WatchHandle {
    fn drop(&mut self) {
        *self.active_watch.lock() = None;
        self.watch_loop.close();
        if let Some(thread) = self.thread.take() {
            // The panic hook has already reported a panic of the thread.
            let _ = thread.join();
        }
    }
}
