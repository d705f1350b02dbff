//! A cache of the snapshots of skills on disk, each with a proof that it is current.
//!
//! It replaces opening, reading and hashing every file of a skill by one read(2) and one poll(2) for each run, whatever
//! the size of the skill. The cost with and without it: `skillbox-bench run`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use skillbox_executor::snapshot::Snapshot;

use super::mount_table::MountTable;
use super::skill_watch::SkillWatch;

/// The device and inode of a skill's directory, so that a path that leads to another directory later has another key.
pub(super) type DirectoryId = (u64, u64);

/// Each cached skill uses one of the user's inotify instances, of which Linux allows 128 by default.
const CACHE_CAPACITY: usize = 64;

/// The current snapshots of watched skills.
#[derive(Debug)]
pub(super) struct SnapshotCache {
    mounts: Mutex<MountTable>,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    by_directory: HashMap<DirectoryId, (u64, Arc<Mutex<CachedSnapshot>>)>,
    /// Counts the uses, to find the entry that was not used for longest.
    clock: u64,
}

#[derive(Debug)]
struct CachedSnapshot {
    snapshot: Arc<Snapshot>,
    watch: SkillWatch,
    mounts: u64,
    /// Whether a change was seen. Its event has left the queue, so this must be known to threads that hold the entry.
    is_stale: bool,
}

impl SnapshotCache {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self {
            mounts: Mutex::new(MountTable::open()?),
            entries: Mutex::default(),
        })
    }

    /// The number of the current mount table. Take it before a skill is read.
    pub(super) fn mount_generation(&self) -> u64 {
        lock(&self.mounts).generation()
    }

    /// The snapshot of a skill whose files have not changed.
    pub(super) fn get(&self, skill: DirectoryId) -> Option<Arc<Snapshot>> {
        let cached = lock(&self.entries).touch(skill)?;
        let mounts = self.mount_generation();
        let mut entry = lock(&cached);
        let is_current = !entry.is_stale
            && entry.watch.is_unchanged()
            && (entry.mounts == mounts || entry.watch.paths_are_unchanged());
        if is_current {
            entry.mounts = mounts;
            return Some(entry.snapshot.clone());
        }
        entry.is_stale = true;
        drop(entry);
        lock(&self.entries).remove(skill, &cached);
        None
    }

    /// Adds a snapshot, if the watch confirms that its files have not changed since they were read.
    pub(super) fn insert(&self, skill: DirectoryId, snapshot: &Arc<Snapshot>, mut watch: SkillWatch, mounts: u64) {
        if !watch.confirm() {
            return;
        }
        let cached = CachedSnapshot {
            snapshot: snapshot.clone(),
            watch,
            mounts,
            is_stale: false,
        };
        lock(&self.entries).insert(skill, cached);
    }
}

impl Entries {
    fn touch(&mut self, skill: DirectoryId) -> Option<Arc<Mutex<CachedSnapshot>>> {
        self.clock += 1;
        let (last_use, cached) = self.by_directory.get_mut(&skill)?;
        *last_use = self.clock;
        Some(cached.clone())
    }

    fn insert(&mut self, skill: DirectoryId, cached: CachedSnapshot) {
        self.clock += 1;
        let is_full = self.by_directory.len() >= CACHE_CAPACITY && !self.by_directory.contains_key(&skill);
        let oldest = self.by_directory.iter().min_by_key(|(_, (last_use, _))| *last_use);
        if let (true, Some((oldest, _))) = (is_full, oldest) {
            let oldest = *oldest;
            self.by_directory.remove(&oldest);
        }
        self.by_directory
            .insert(skill, (self.clock, Arc::new(Mutex::new(cached))));
    }

    /// Removes an entry, unless another thread has replaced it.
    fn remove(&mut self, skill: DirectoryId, stale: &Arc<Mutex<CachedSnapshot>>) {
        if self
            .by_directory
            .get(&skill)
            .is_some_and(|(_, cached)| Arc::ptr_eq(cached, stale))
        {
            self.by_directory.remove(&skill);
        }
    }
}

/// Ignores poisoning: a panic leaves the map complete or without one entry, and both are correct.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
