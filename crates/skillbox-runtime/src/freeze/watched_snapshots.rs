//! A cache of snapshots that uses inotify(7) to prove that they are current.
//!
//! The kernel queues an event before the system call that changed a file returns. An empty queue at the start of a run
//! therefore means that no file changed since the directories were watched, whatever the size of the skill.
//!
//! One read(2) replaces opening, reading and hashing every file of the skill on each run.
//! Gain: to be measured (`skillbox-bench run`, with and without `watch_skills`).

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use skillbox_executor::snapshot::Snapshot;

/// The device and inode of a skill's directory, so that a path that leads to another directory later has another key.
pub(super) type DirectoryId = (u64, u64);

/// The events that make a snapshot stale, and the flags of every watch.
const WATCH_FLAGS: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::DONT_FOLLOW)
    .union(WatchFlags::ONLYDIR);

/// Snapshots of watched skills, removed as soon as a file changes.
#[derive(Debug)]
pub(super) struct WatchedSnapshots {
    inotify_fd: OwnedFd,
    /// The skill directory that each watch descriptor belongs to.
    watches: HashMap<i32, DirectoryId>,
    snapshots: HashMap<DirectoryId, Arc<Snapshot>>,
}

impl WatchedSnapshots {
    pub(super) fn new() -> rustix::io::Result<Self> {
        Ok(Self {
            inotify_fd: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?,
            watches: HashMap::new(),
            snapshots: HashMap::new(),
        })
    }

    /// The snapshot of a skill that has not changed since the snapshot was made.
    pub(super) fn get(&mut self, skill: DirectoryId) -> Option<Arc<Snapshot>> {
        self.remove_changed();
        self.snapshots.get(&skill).cloned()
    }

    /// Watches the directories of a skill. Call it before reading them, so that changes during the read are noticed.
    pub(super) fn watch<'a>(
        &mut self,
        skill: DirectoryId,
        directories: impl Iterator<Item = &'a Path>,
    ) -> rustix::io::Result<()> {
        for directory in directories {
            let watch = inotify::add_watch(&self.inotify_fd, directory, WATCH_FLAGS)?;
            self.watches.insert(watch, skill);
        }
        Ok(())
    }

    /// Adds a snapshot that was made after its skill was watched.
    pub(super) fn insert(&mut self, skill: DirectoryId, snapshot: &Arc<Snapshot>) {
        self.snapshots.insert(skill, snapshot.clone());
    }

    /// Removes a skill and its watches.
    pub(super) fn remove(&mut self, skill: DirectoryId) {
        self.snapshots.remove(&skill);
        let stale: Vec<i32> = self
            .watches
            .iter()
            .filter(|(_, watched)| **watched == skill)
            .map(|(watch, _)| *watch)
            .collect();
        for watch in stale {
            self.watches.remove(&watch);
            // Fails if the kernel removed the watch together with its directory.
            let _removed = inotify::remove_watch(&self.inotify_fd, watch);
        }
    }

    fn remove_changed(&mut self) {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut changed = Vec::new();
        let mut has_lost_events = false;
        let mut reader = inotify::Reader::new(&self.inotify_fd, &mut buffer);
        loop {
            match reader.next() {
                Ok(event) if event.events().contains(ReadFlags::QUEUE_OVERFLOW) => has_lost_events = true,
                Ok(event) => changed.extend(self.watches.get(&event.wd()).copied()),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // If the queue cannot be read, no snapshot is known to be current.
                Err(_) => {
                    has_lost_events = true;
                    break;
                }
            }
        }
        if has_lost_events {
            self.snapshots.clear();
        }
        changed.sort_unstable();
        changed.dedup();
        changed.into_iter().for_each(|skill| self.remove(skill));
    }
}
