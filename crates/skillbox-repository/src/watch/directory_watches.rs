//! The inotify watches on the directories of the sources.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::{Config, ErrorKind, RecommendedWatcher, RecursiveMode, Watcher};
use rustix::io::Errno;

use super::change_flag::ChangeFlag;
use super::event_queue::EventQueue;
use super::remote_fs::is_remote;
use super::sync_cookies::SyncCookies;
use crate::fs::{FileIdentity, file_identity};

/// One watch for each scanned directory. Watches are not recursive, so directories that a scan skips, such as installed
/// packages, are not watched.
pub(super) struct DirectoryWatches {
    watcher: RecommendedWatcher,
    /// `None` if the private directory could not be created; then every refresh checks everything.
    cookies: Option<SyncCookies>,
    /// `None` if it has no watch on some directory; then every refresh waits for a cookie.
    change_flag: Option<ChangeFlag>,
    watched: HashMap<PathBuf, FileIdentity>,
    /// The identities of the watched directories.
    identities: HashSet<FileIdentity>,
    /// Directories without a watch: missing, remote, or watched under another path.
    polled: HashSet<PathBuf>,
    /// Whether each device that was seen is a remote file system.
    remote_devices: HashMap<u64, bool>,
}

impl std::fmt::Debug for DirectoryWatches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirectoryWatches")
            .field("watched", &self.watched.len())
            .field("polled", &self.polled.len())
            .finish_non_exhaustive()
    }
}

impl DirectoryWatches {
    pub(super) fn new(events: &Arc<EventQueue>) -> notify::Result<Self> {
        let cookies = SyncCookies::new().ok();
        let directory = cookies.as_ref().map(|cookies| cookies.directory().to_owned());
        let handler = {
            let events = events.clone();
            move |event: notify::Result<notify::Event>| {
                let path = event.as_ref().ok().and_then(|event| event.paths.first());
                match (&directory, path) {
                    (Some(directory), Some(path)) if path.starts_with(directory) => {
                        if let Some(cookie) = SyncCookies::cookie_of_path(directory, path) {
                            events.record_cookie(cookie);
                        }
                    }
                    _ => events.push(event),
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
            change_flag: ChangeFlag::new().ok(),
            watched: HashMap::new(),
            identities: HashSet::new(),
            polled: HashSet::new(),
            remote_devices: HashMap::new(),
        })
    }

    /// The number of directories with a watch.
    pub(super) fn watched_count(&self) -> usize {
        self.watched.len()
    }

    /// The directories without a watch, which must be polled.
    pub(super) fn polled(&self) -> Vec<PathBuf> {
        self.polled.iter().cloned().collect()
    }

    /// Watches directories and returns the number of new watches. Fails if the kernel has no resources for more.
    pub(super) fn add(&mut self, directories: &[PathBuf]) -> notify::Result<usize> {
        let mut new = 0;
        for directory in directories {
            new += usize::from(self.add_one(directory)?);
        }
        Ok(new)
    }

    fn add_one(&mut self, directory: &Path) -> notify::Result<bool> {
        let Ok(stat) = rustix::fs::stat(directory) else {
            // The directory is missing or not accessible, and must be polled.
            self.remove_one(directory);
            self.polled.insert(directory.to_owned());
            return Ok(false);
        };
        let identity = file_identity(&stat);
        match self.watched.get(directory) {
            Some(known) if *known == identity => return Ok(false),
            Some(_) => self.remove_one(directory),
            None => {}
        }
        let is_remote_device = self
            .remote_devices
            .entry(identity.0)
            .or_insert_with(|| is_remote(directory));
        if *is_remote_device || self.identities.contains(&identity) {
            self.polled.insert(directory.to_owned());
            return Ok(false);
        }
        match self.watcher.watch(directory, RecursiveMode::NonRecursive) {
            Ok(()) => {
                if self
                    .change_flag
                    .as_mut()
                    .is_some_and(|flag| flag.add(directory).is_err())
                {
                    self.change_flag = None;
                }
                self.polled.remove(directory);
                self.watched.insert(directory.to_owned(), identity);
                self.identities.insert(identity);
                Ok(true)
            }
            Err(error) if is_out_of_resources(&error) => Err(error),
            Err(_) => {
                self.polled.insert(directory.to_owned());
                Ok(false)
            }
        }
    }

    /// Watches directories again after the kernel may have dropped their watches.
    pub(super) fn renew(&mut self, directories: &[PathBuf]) -> notify::Result<usize> {
        for directory in directories {
            if let Some(identity) = self.watched.remove(directory) {
                self.identities.remove(&identity);
            }
        }
        self.add(directories)
    }

    /// Removes the watches on directories that are no longer scanned.
    pub(super) fn remove<'d>(&mut self, directories: impl Iterator<Item = &'d PathBuf>) {
        for directory in directories {
            self.remove_one(directory);
        }
    }

    fn remove_one(&mut self, directory: &Path) {
        self.polled.remove(directory);
        if let Some(identity) = self.watched.remove(directory) {
            self.identities.remove(&identity);
            if let Some(flag) = &mut self.change_flag {
                flag.remove(directory);
            }
            // This fails if the directory was removed, because the kernel has then dropped the watch.
            let _ = self.watcher.unwatch(directory);
        }
    }

    /// Waits until all events up to now are in the queue, and returns whether they are. Without any change since the last
    /// call, there is nothing to wait for.
    pub(super) fn sync(&mut self, events: &EventQueue) -> bool {
        if self.change_flag.as_mut().is_some_and(|flag| !flag.take()) {
            return true;
        }
        self.cookies.as_mut().is_some_and(|cookies| cookies.sync(events))
    }
}

/// Whether the kernel has no watches, descriptors or memory left.
fn is_out_of_resources(error: &notify::Error) -> bool {
    match &error.kind {
        ErrorKind::MaxFilesWatch => true,
        ErrorKind::Io(error) => matches!(
            Errno::from_io_error(error),
            Some(Errno::NOSPC | Errno::MFILE | Errno::NFILE | Errno::NOMEM)
        ),
        _ => false,
    }
}
