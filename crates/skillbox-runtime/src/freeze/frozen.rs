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

#[cfg(test)]
mod tests {
    use std::fs;

    use skillbox_model::RelPath;
    use skillbox_repository::{Catalog, Repository, ScanOptions, Source};

    use super::*;

    fn world() -> (tempfile::TempDir, Catalog) {
        let directory = tempfile::tempdir().unwrap();
        let skill = directory.path().join("skills/one");
        fs::create_dir_all(skill.join("scripts/deep")).unwrap();
        fs::write(skill.join("SKILL.md"), "---\nname: one\ndescription: A skill.\n---\n").unwrap();
        fs::write(skill.join("scripts/deep/a.sh"), "echo old\n").unwrap();
        let source = Source::Directory {
            path: directory.path().join("skills"),
            scope: Scope::Project,
        };
        let catalog = Repository::open(vec![source], ScanOptions::default()).catalog();
        (directory, catalog)
    }

    fn script(snapshot: &Snapshot) -> String {
        let head = snapshot
            .read_head(&RelPath::parse("scripts/deep/a.sh").unwrap())
            .unwrap();
        String::from_utf8(head).unwrap()
    }

    #[test]
    fn an_unchanged_skill_is_not_read_again() {
        let (directory, catalog) = world();
        let frozen = Frozen::new(SnapshotStore::new(directory.path().join("snapshots")), true);
        let entry = catalog.get("one").unwrap();
        let first = frozen.get(entry).unwrap();
        assert!(Arc::ptr_eq(&first, &frozen.get(entry).unwrap()));
    }

    #[test]
    fn a_change_anywhere_in_the_skill_is_seen_by_the_very_next_run() {
        let (directory, catalog) = world();
        let place = directory.path().join("skills/one/scripts/deep");
        let entry = catalog.get("one").unwrap();
        for watch in [true, false] {
            fs::write(place.join("a.sh"), "echo old\n").unwrap();
            let frozen = Frozen::new(SnapshotStore::new(directory.path().join("snapshots")), watch);
            let before = frozen.get(entry).unwrap();
            assert_eq!(script(&before), "echo old\n");
            fs::write(place.join("a.sh"), "echo new\n").unwrap();
            let after = frozen.get(entry).unwrap();
            assert_eq!(script(&after), "echo new\n");
            assert_ne!(before.digest(), after.digest());
            // Only the executable bit, then a new file, then a rename: each is another skill.
            let mut digests = vec![before.digest(), after.digest()];
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            fs::set_permissions(place.join("a.sh"), mode).unwrap();
            digests.push(frozen.get(entry).unwrap().digest());
            fs::create_dir(place.join("new")).unwrap();
            fs::write(place.join("new/b"), "b").unwrap();
            digests.push(frozen.get(entry).unwrap().digest());
            fs::rename(place.join("new/b"), place.join("new/c")).unwrap();
            digests.push(frozen.get(entry).unwrap().digest());
            let distinct: std::collections::BTreeSet<_> = digests.iter().collect();
            assert_eq!(distinct.len(), digests.len());
            fs::remove_dir_all(place.join("new")).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
            fs::set_permissions(place.join("a.sh"), mode).unwrap();
        }
    }

    #[test]
    fn what_is_frozen_does_not_change_with_its_source() {
        let (directory, catalog) = world();
        let frozen = Frozen::new(SnapshotStore::new(directory.path().join("snapshots")), true);
        let snapshot = frozen.get(catalog.get("one").unwrap()).unwrap();
        fs::write(directory.path().join("skills/one/scripts/deep/a.sh"), "echo other\n").unwrap();
        assert_eq!(script(&snapshot), "echo old\n");
    }
}
