//! Knowing, for the price of one system call, that a skill's files have not changed.
//!
//! The kernel queues an event before the call that changed something returns. So an empty queue at the start of a run
//! means that nothing has changed since the directories were watched: no debounce, no walk, whatever the skill's size.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use skillbox_executor::snapshot::Snapshot;

/// Which directory of the host a skill is: its device and inode, so that a path that leads elsewhere is another key.
pub(super) type Place = (u64, u64);

/// Everything that makes a frozen copy stale.
const CHANGES: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::DONT_FOLLOW)
    .union(WatchFlags::ONLYDIR);

/// Frozen skills that are known to be current.
#[derive(Debug)]
pub(super) struct Watched {
    queue: OwnedFd,
    /// Which skill a watch belongs to.
    watches: HashMap<i32, Place>,
    current: HashMap<Place, Arc<Snapshot>>,
}

impl Watched {
    pub(super) fn new() -> rustix::io::Result<Self> {
        Ok(Self {
            queue: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?,
            watches: HashMap::new(),
            current: HashMap::new(),
        })
    }

    /// The frozen copy of a skill, where nothing of it has changed since it was made.
    pub(super) fn current(&mut self, place: Place) -> Option<Arc<Snapshot>> {
        self.forget_changed();
        self.current.get(&place).cloned()
    }

    /// Watches the directories of a skill. It comes before reading them: what changes while they are read is noticed.
    pub(super) fn watch<'a>(
        &mut self,
        place: Place,
        directories: impl Iterator<Item = &'a Path>,
    ) -> rustix::io::Result<()> {
        for directory in directories {
            let watch = inotify::add_watch(&self.queue, directory, CHANGES)?;
            self.watches.insert(watch, place);
        }
        Ok(())
    }

    /// Remembers a copy that was made after its skill was watched.
    pub(super) fn remember(&mut self, place: Place, snapshot: &Arc<Snapshot>) {
        self.current.insert(place, snapshot.clone());
    }

    /// Forgets a skill that cannot be watched after all.
    pub(super) fn forget(&mut self, place: Place) {
        self.current.remove(&place);
        let stale: Vec<i32> = self
            .watches
            .iter()
            .filter(|(_, of)| **of == place)
            .map(|(watch, _)| *watch)
            .collect();
        for watch in stale {
            self.watches.remove(&watch);
            // It may be gone with its directory.
            let _gone = inotify::remove_watch(&self.queue, watch);
        }
    }

    fn forget_changed(&mut self) {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut changed = Vec::new();
        let mut overflown = false;
        let mut reader = inotify::Reader::new(&self.queue, &mut buffer);
        loop {
            match reader.next() {
                Ok(event) if event.events().contains(ReadFlags::QUEUE_OVERFLOW) => overflown = true,
                Ok(event) => changed.extend(self.watches.get(&event.wd()).copied()),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // A queue that cannot be read proves nothing.
                Err(_) => {
                    overflown = true;
                    break;
                }
            }
        }
        if overflown {
            self.current.clear();
        }
        changed.sort_unstable();
        changed.dedup();
        changed.into_iter().for_each(|place| self.forget(place));
    }
}
