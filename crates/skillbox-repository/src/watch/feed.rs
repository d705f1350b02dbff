//! The kernel's watches on the directories of the sources.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::{Config, ErrorKind, RecommendedWatcher, RecursiveMode, Watcher};
use rustix::io::Errno;

use super::cookie::Cookies;
use super::inbox::Inbox;
use super::remote::is_remote;
use crate::stamp::{Identity, identity};

/// One watch for each directory that a scan looks into. None is recursive: what a scan passes by, such as installed
/// packages and whatever links inside a skill lead to, is not watched either.
pub(super) struct Feed {
    watcher: RecommendedWatcher,
    /// None where no private directory could be had; then every refresh looks at everything.
    cookies: Option<Cookies>,
    watched: HashMap<PathBuf, Identity>,
    identities: HashSet<Identity>,
    /// Looked at from time to time: remote, or watched under another path.
    unwatched: HashSet<PathBuf>,
    remote_devices: HashMap<u64, bool>,
}

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feed")
            .field("watched", &self.watched.len())
            .field("unwatched", &self.unwatched.len())
            .finish_non_exhaustive()
    }
}

impl Feed {
    pub(super) fn new(inbox: &Arc<Inbox>) -> notify::Result<Self> {
        let cookies = Cookies::new().ok();
        let directory = cookies.as_ref().map(|cookies| cookies.directory().to_owned());
        let handler = {
            let inbox = inbox.clone();
            move |event: notify::Result<notify::Event>| {
                let path = event.as_ref().ok().and_then(|event| event.paths.first());
                match (&directory, path) {
                    (Some(directory), Some(path)) if path.starts_with(directory) => {
                        if let Some(cookie) = Cookies::number(directory, path) {
                            inbox.put_cookie(cookie);
                        }
                    }
                    _ => inbox.put(event),
                }
            }
        };
        let mut watcher = RecommendedWatcher::new(handler, Config::default())?;
        if let Some(cookies) = &cookies {
            watcher.watch(cookies.directory(), RecursiveMode::NonRecursive)?;
        }
        Ok(Self {
            watcher,
            cookies,
            watched: HashMap::new(),
            identities: HashSet::new(),
            unwatched: HashSet::new(),
            remote_devices: HashMap::new(),
        })
    }

    /// How many directories have a watch.
    pub(super) fn watched(&self) -> usize {
        self.watched.len()
    }

    /// The directories that have none.
    pub(super) fn unwatched(&self) -> Vec<PathBuf> {
        self.unwatched.iter().cloned().collect()
    }

    /// Watches directories, and tells how many watches are new. An error means that the kernel gives no more.
    pub(super) fn attach(&mut self, directories: &[PathBuf]) -> notify::Result<usize> {
        let mut new = 0;
        for directory in directories {
            new += usize::from(self.attach_one(directory)?);
        }
        Ok(new)
    }

    fn attach_one(&mut self, directory: &Path) -> notify::Result<bool> {
        let Ok(stat) = rustix::fs::stat(directory) else {
            // Not there, or not to be seen: it has to be tried again.
            self.forget(directory);
            self.unwatched.insert(directory.to_owned());
            return Ok(false);
        };
        let identity = identity(&stat);
        match self.watched.get(directory) {
            Some(known) if *known == identity => return Ok(false),
            Some(_) => self.forget(directory),
            None => {}
        }
        let remote = self
            .remote_devices
            .entry(identity.0)
            .or_insert_with(|| is_remote(directory));
        if *remote || self.identities.contains(&identity) {
            self.unwatched.insert(directory.to_owned());
            return Ok(false);
        }
        match self.watcher.watch(directory, RecursiveMode::NonRecursive) {
            Ok(()) => {
                self.unwatched.remove(directory);
                self.watched.insert(directory.to_owned(), identity);
                self.identities.insert(identity);
                Ok(true)
            }
            Err(error) if is_exhaustion(&error) => Err(error),
            Err(_) => {
                self.unwatched.insert(directory.to_owned());
                Ok(false)
            }
        }
    }

    /// Watches directories again whose watches may have been lost without our doing.
    pub(super) fn attach_again(&mut self, directories: &[PathBuf]) -> notify::Result<usize> {
        for directory in directories {
            if let Some(identity) = self.watched.remove(directory) {
                self.identities.remove(&identity);
            }
        }
        self.attach(directories)
    }

    /// Gives up the watches on directories that are no longer looked into.
    pub(super) fn detach<'d>(&mut self, directories: impl Iterator<Item = &'d PathBuf>) {
        for directory in directories {
            self.forget(directory);
        }
    }

    fn forget(&mut self, directory: &Path) {
        self.unwatched.remove(directory);
        if let Some(identity) = self.watched.remove(directory) {
            self.identities.remove(&identity);
            // The kernel has dropped the watch itself when the directory is gone.
            let _ = self.watcher.unwatch(directory);
        }
    }

    /// Waits until every event up to now is in the inbox, and tells whether that worked.
    pub(super) fn sync(&mut self, inbox: &Inbox) -> bool {
        self.cookies.as_mut().is_some_and(|cookies| cookies.sync(inbox))
    }
}

/// Whether the kernel has no more watches, descriptors or memory to give.
fn is_exhaustion(error: &notify::Error) -> bool {
    match &error.kind {
        ErrorKind::MaxFilesWatch => true,
        ErrorKind::Io(error) => matches!(
            Errno::from_io_error(error),
            Some(Errno::NOSPC | Errno::MFILE | Errno::NFILE | Errno::NOMEM)
        ),
        _ => false,
    }
}
