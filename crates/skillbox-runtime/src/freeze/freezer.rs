//! Freezes skills, and reuses the snapshot of a skill that has not changed.
//!
//! Embedded skills cannot change while the program runs, so their snapshots stay in a map. Skills on disk stay in
//! [`WatchedSnapshots`] if the host watches them.
//!
//! The map avoids hashing every file of an embedded skill on each run.
//! Gain of the map: to be measured (`skillbox-bench run`, with a built-in skill).

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use skillbox_executor::snapshot::{Snapshot, SnapshotStore};
use skillbox_repository::{Scope, SkillEntry, TreeEntryKind};

use super::copy::copy_skill;
use super::watched_snapshots::{DirectoryId, WatchedSnapshots};
use crate::RunError;

/// Freezes skills into a snapshot store.
#[derive(Debug)]
pub(crate) struct SkillFreezer {
    store: SnapshotStore,
    watched: Option<Mutex<WatchedSnapshots>>,
    embedded: Mutex<HashMap<PathBuf, Arc<Snapshot>>>,
}

impl SkillFreezer {
    /// Creates a freezer. With `watch`, it watches skills that ran, which is useless in a process with a single run.
    pub(crate) fn new(store: SnapshotStore, watch: bool) -> Self {
        let watched = if watch { WatchedSnapshots::new().ok() } else { None };
        Self {
            store,
            watched: watched.map(Mutex::new),
            embedded: Mutex::default(),
        }
    }

    pub(crate) fn store(&self) -> &SnapshotStore {
        &self.store
    }

    /// The snapshot of a skill's current files.
    pub(crate) fn freeze(&self, entry: &SkillEntry) -> Result<Arc<Snapshot>, RunError> {
        if entry.scope() == Scope::BuiltIn {
            return self.freeze_embedded(entry);
        }
        let (Some(watched), Some(directory)) = (&self.watched, directory_id(entry.dir())) else {
            return copy_skill(&self.store, entry);
        };
        if let Some(snapshot) = lock(watched).get(directory) {
            return Ok(snapshot);
        }
        let is_watched = watch_skill(watched, directory, entry);
        let snapshot = copy_skill(&self.store, entry)?;
        if is_watched {
            lock(watched).insert(directory, &snapshot);
        }
        Ok(snapshot)
    }

    fn freeze_embedded(&self, entry: &SkillEntry) -> Result<Arc<Snapshot>, RunError> {
        let cached = lock(&self.embedded).get(entry.skill_md_path()).cloned();
        if let Some(snapshot) = cached {
            return Ok(snapshot);
        }
        let snapshot = copy_skill(&self.store, entry)?;
        lock(&self.embedded).insert(entry.skill_md_path().to_owned(), snapshot.clone());
        Ok(snapshot)
    }
}

/// Watches every directory of a skill, and returns whether that succeeded. If it fails, for example at the kernel's limit
/// of watches, the skill is read again for each run: slower, but never stale.
fn watch_skill(watched: &Mutex<WatchedSnapshots>, directory: DirectoryId, entry: &SkillEntry) -> bool {
    let Ok(tree) = entry.open().and_then(|directory| directory.tree_entries()) else {
        return false;
    };
    let root = entry.dir();
    let below = tree
        .iter()
        .filter(|item| item.kind == TreeEntryKind::Dir)
        .map(|item| root.join(item.path.as_path()));
    let directories: Vec<PathBuf> = below.chain([root.join(".")]).collect();
    let mut watched = lock(watched);
    let result = watched.watch(directory, directories.iter().map(PathBuf::as_path));
    if result.is_err() {
        watched.remove(directory);
    }
    result.is_ok()
}

fn directory_id(directory: &Path) -> Option<DirectoryId> {
    let metadata = std::fs::metadata(directory).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// Ignores poisoning: a panic leaves the map complete or without one entry, and both are correct.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use skillbox_model::RelPath;
    use skillbox_repository::{Catalog, Repository, ScanOptions, Source};

    use super::*;

    fn skill_fixture() -> (tempfile::TempDir, Catalog) {
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

    fn script_text(snapshot: &Snapshot) -> String {
        let head = snapshot
            .read_head(&RelPath::parse("scripts/deep/a.sh").unwrap())
            .unwrap();
        String::from_utf8(head).unwrap()
    }

    #[test]
    fn an_unchanged_skill_is_frozen_once() {
        let (directory, catalog) = skill_fixture();
        let freezer = SkillFreezer::new(SnapshotStore::new(directory.path().join("snapshots")), true);
        let entry = catalog.get("one").unwrap();
        let first = freezer.freeze(entry).unwrap();
        assert!(Arc::ptr_eq(&first, &freezer.freeze(entry).unwrap()));
    }

    #[test]
    fn a_change_in_any_directory_reaches_the_next_run() {
        let (directory, catalog) = skill_fixture();
        let deep = directory.path().join("skills/one/scripts/deep");
        let entry = catalog.get("one").unwrap();
        for watch in [true, false] {
            fs::write(deep.join("a.sh"), "echo old\n").unwrap();
            let freezer = SkillFreezer::new(SnapshotStore::new(directory.path().join("snapshots")), watch);
            let before = freezer.freeze(entry).unwrap();
            assert_eq!(script_text(&before), "echo old\n");
            fs::write(deep.join("a.sh"), "echo new\n").unwrap();
            let after = freezer.freeze(entry).unwrap();
            assert_eq!(script_text(&after), "echo new\n");
            assert_ne!(before.digest(), after.digest());
            // The executable bit alone, a new file and a rename each change the digest.
            let mut digests = vec![before.digest(), after.digest()];
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            fs::set_permissions(deep.join("a.sh"), mode).unwrap();
            digests.push(freezer.freeze(entry).unwrap().digest());
            fs::create_dir(deep.join("new")).unwrap();
            fs::write(deep.join("new/b"), "b").unwrap();
            digests.push(freezer.freeze(entry).unwrap().digest());
            fs::rename(deep.join("new/b"), deep.join("new/c")).unwrap();
            digests.push(freezer.freeze(entry).unwrap().digest());
            let distinct: std::collections::BTreeSet<_> = digests.iter().collect();
            assert_eq!(distinct.len(), digests.len());
            fs::remove_dir_all(deep.join("new")).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
            fs::set_permissions(deep.join("a.sh"), mode).unwrap();
        }
    }

    #[test]
    fn a_snapshot_does_not_change_with_its_source() {
        let (directory, catalog) = skill_fixture();
        let freezer = SkillFreezer::new(SnapshotStore::new(directory.path().join("snapshots")), true);
        let snapshot = freezer.freeze(catalog.get("one").unwrap()).unwrap();
        fs::write(directory.path().join("skills/one/scripts/deep/a.sh"), "echo other\n").unwrap();
        assert_eq!(script_text(&snapshot), "echo old\n");
    }
}
