//! The frozen copy of a skill as it is now.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use skillbox_executor::snapshot::{Snapshot, SnapshotStore};
use skillbox_repository::{Scope, SkillEntry, TreeEntryKind};

use super::copy::freeze;
use super::watched::{Place, Watched};
use crate::RunError;

/// Gives frozen skills; a server that watches does not read a skill again that has not changed.
#[derive(Debug)]
pub(crate) struct Frozen {
    store: SnapshotStore,
    watched: Option<Mutex<Watched>>,
    embedded: Mutex<HashMap<PathBuf, Arc<Snapshot>>>,
}

impl Frozen {
    /// With `watch`, skills that were run are watched; a program that makes one run has no use for that.
    pub(crate) fn new(store: SnapshotStore, watch: bool) -> Self {
        let watched = if watch { Watched::new().ok() } else { None };
        Self {
            store,
            watched: watched.map(Mutex::new),
            embedded: Mutex::default(),
        }
    }

    pub(crate) fn store(&self) -> &SnapshotStore {
        &self.store
    }

    /// The frozen copy of a skill as it is now.
    pub(crate) fn get(&self, entry: &SkillEntry) -> Result<Arc<Snapshot>, RunError> {
        if entry.scope() == Scope::BuiltIn {
            return self.embedded(entry);
        }
        let (Some(watched), Some(place)) = (&self.watched, place(entry.dir())) else {
            return freeze(&self.store, entry);
        };
        if let Some(snapshot) = lock(watched).current(place) {
            return Ok(snapshot);
        }
        let is_watched = self.watch(watched, place, entry);
        let snapshot = freeze(&self.store, entry)?;
        if is_watched {
            lock(watched).remember(place, &snapshot);
        }
        Ok(snapshot)
    }

    /// What is inside the program does not change while it runs.
    fn embedded(&self, entry: &SkillEntry) -> Result<Arc<Snapshot>, RunError> {
        let known = lock(&self.embedded).get(entry.path()).cloned();
        if let Some(snapshot) = known {
            return Ok(snapshot);
        }
        let snapshot = freeze(&self.store, entry)?;
        lock(&self.embedded).insert(entry.path().to_owned(), snapshot.clone());
        Ok(snapshot)
    }

    /// Whether every directory of the skill is watched now. Where the kernel has no watches left, the skill is read
    /// anew for each run: slower, never stale.
    fn watch(&self, watched: &Mutex<Watched>, place: Place, entry: &SkillEntry) -> bool {
        let Ok(tree) = entry.open().and_then(|directory| directory.files()) else {
            return false;
        };
        let root = entry.dir();
        let below = tree
            .iter()
            .filter(|item| item.kind == TreeEntryKind::Dir)
            .map(|item| root.join(item.path.as_path()));
        let directories: Vec<PathBuf> = below.chain([root.join(".")]).collect();
        let mut watched = lock(watched);
        let all = watched.watch(place, directories.iter().map(PathBuf::as_path));
        if all.is_err() {
            watched.forget(place);
        }
        all.is_ok()
    }
}

fn place(directory: &Path) -> Option<Place> {
    let found = std::fs::metadata(directory).ok()?;
    Some((found.dev(), found.ino()))
}

/// A holder that panicked left a map that is right or lacks an entry; both are fine.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
