//! Freezes skills, and reuses the snapshot of a skill that has not changed.
//!
//! Embedded skills cannot change while the program runs, so their snapshots stay in a map. Skills on disk stay in
//! [`SnapshotCache`] if the host watches them.
//!
//! The map avoids hashing every file of an embedded skill on each run.
//! Gain of the map: to be measured (`skillbox-bench run`, with a built-in skill).

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use skillbox_executor::snapshot::{Snapshot, SnapshotStore};
use skillbox_repository::{Scope, SkillEntry};

use super::copy::copy_skill;
use super::skill_watch::SkillWatch;
use super::snapshot_cache::{DirectoryId, SnapshotCache, lock};
use crate::RunError;

/// Freezes skills into a snapshot store.
#[derive(Debug)]
pub(crate) struct SkillFreezer {
    store: SnapshotStore,
    cache: Option<SnapshotCache>,
    embedded: Mutex<HashMap<PathBuf, Arc<Snapshot>>>,
}

impl SkillFreezer {
    /// Creates a freezer. With `watch`, it watches skills that ran, which is useless in a process with a single run.
    pub(crate) fn new(store: SnapshotStore, watch: bool) -> Self {
        Self {
            store,
            cache: if watch { SnapshotCache::new().ok() } else { None },
            embedded: Mutex::default(),
        }
    }

    pub(crate) fn store(&self) -> &SnapshotStore {
        &self.store
    }

    /// The snapshot of a skill's current files.
    pub(crate) fn freeze(
        &self,
        entry: &SkillEntry,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Arc<Snapshot>, RunError> {
        if entry.scope() == Scope::BuiltIn {
            return self.freeze_embedded(entry);
        }
        let (Some(cache), Some(directory)) = (&self.cache, directory_id(entry.dir())) else {
            return copy_skill(&self.store, entry, is_cancelled);
        };
        if let Some(snapshot) = cache.get(directory) {
            return Ok(snapshot);
        }
        let mounts = cache.mount_generation();
        // If the skill cannot be watched, for example at the kernel's limit of watches, it is read again for each run:
        // slower, but never stale.
        let watch = entry.open().ok().and_then(|opened| SkillWatch::new(opened).ok());
        let snapshot = copy_skill(&self.store, entry, is_cancelled)?;
        if let Some(watch) = watch {
            cache.insert(directory, &snapshot, watch, mounts);
        }
        Ok(snapshot)
    }

    fn freeze_embedded(&self, entry: &SkillEntry) -> Result<Arc<Snapshot>, RunError> {
        let cached = lock(&self.embedded).get(entry.skill_md_path()).cloned();
        if let Some(snapshot) = cached {
            return Ok(snapshot);
        }
        let snapshot = copy_skill(&self.store, entry, &|| false)?;
        lock(&self.embedded).insert(entry.skill_md_path().to_owned(), snapshot.clone());
        Ok(snapshot)
    }
}

fn directory_id(directory: &Path) -> Option<DirectoryId> {
    let metadata = std::fs::metadata(directory).ok()?;
    Some((metadata.dev(), metadata.ino()))
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

    /// Freezes until two calls return the same snapshot.
    fn wait_until_reused(freezer: &SkillFreezer, entry: &SkillEntry) -> Arc<Snapshot> {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        loop {
            let first = freezer.freeze(entry, &|| false).unwrap();
            if Arc::ptr_eq(&first, &freezer.freeze(entry, &|| false).unwrap()) {
                return first;
            }
            assert!(std::time::Instant::now() < deadline, "the snapshot is never reused");
            std::thread::yield_now();
        }
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
        // A file that was written a moment ago could be written again without a new change time, so the first snapshots
        // are not reused.
        wait_until_reused(&freezer, entry);
    }

    #[test]
    fn a_change_in_any_directory_reaches_the_next_run() {
        let (directory, catalog) = skill_fixture();
        let deep = directory.path().join("skills/one/scripts/deep");
        let entry = catalog.get("one").unwrap();
        for watch in [true, false] {
            fs::write(deep.join("a.sh"), "echo old\n").unwrap();
            let freezer = SkillFreezer::new(SnapshotStore::new(directory.path().join("snapshots")), watch);
            let before = freezer.freeze(entry, &|| false).unwrap();
            assert_eq!(script_text(&before), "echo old\n");
            fs::write(deep.join("a.sh"), "echo new\n").unwrap();
            let after = freezer.freeze(entry, &|| false).unwrap();
            assert_eq!(script_text(&after), "echo new\n");
            assert_ne!(before.digest(), after.digest());
            // The executable bit alone, a new file and a rename each change the digest.
            let mut digests = vec![before.digest(), after.digest()];
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            fs::set_permissions(deep.join("a.sh"), mode).unwrap();
            digests.push(freezer.freeze(entry, &|| false).unwrap().digest());
            fs::create_dir(deep.join("new")).unwrap();
            fs::write(deep.join("new/b"), "b").unwrap();
            digests.push(freezer.freeze(entry, &|| false).unwrap().digest());
            fs::rename(deep.join("new/b"), deep.join("new/c")).unwrap();
            digests.push(freezer.freeze(entry, &|| false).unwrap().digest());
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
        let snapshot = freezer.freeze(catalog.get("one").unwrap(), &|| false).unwrap();
        fs::write(directory.path().join("skills/one/scripts/deep/a.sh"), "echo other\n").unwrap();
        assert_eq!(script_text(&snapshot), "echo old\n");
    }

    #[test]
    fn reading_a_file_keeps_the_snapshot_and_writing_ends_it() {
        let (directory, catalog) = skill_fixture();
        let freezer = SkillFreezer::new(SnapshotStore::new(directory.path().join("snapshots")), true);
        let entry = catalog.get("one").unwrap();
        let script = directory.path().join("skills/one/scripts/deep/a.sh");
        let reused = wait_until_reused(&freezer, entry);
        for _ in 0..3 {
            fs::read(&script).unwrap();
            assert!(Arc::ptr_eq(&reused, &freezer.freeze(entry, &|| false).unwrap()));
        }
        // While a writer has the file open, it could write through a mapping, so nothing is reused.
        let writer = fs::OpenOptions::new().write(true).open(&script).unwrap();
        assert!(!Arc::ptr_eq(&reused, &freezer.freeze(entry, &|| false).unwrap()));
        let first = freezer.freeze(entry, &|| false).unwrap();
        assert!(!Arc::ptr_eq(&first, &freezer.freeze(entry, &|| false).unwrap()));
        drop(writer);
        wait_until_reused(&freezer, entry);
    }

    #[test]
    fn a_write_through_a_hard_link_outside_the_skill_reaches_the_next_run() {
        let (directory, catalog) = skill_fixture();
        let freezer = SkillFreezer::new(SnapshotStore::new(directory.path().join("snapshots")), true);
        let entry = catalog.get("one").unwrap();
        wait_until_reused(&freezer, entry);
        let outside = directory.path().join("outside");
        fs::hard_link(directory.path().join("skills/one/scripts/deep/a.sh"), &outside).unwrap();
        wait_until_reused(&freezer, entry);
        fs::write(&outside, "echo linked\n").unwrap();
        assert_eq!(script_text(&freezer.freeze(entry, &|| false).unwrap()), "echo linked\n");
    }

    #[test]
    fn a_file_of_a_nested_skill_belongs_to_both_skills() {
        let (directory, _) = skill_fixture();
        let deep = directory.path().join("skills/one/scripts/deep");
        fs::write(deep.join("SKILL.md"), "---\nname: inner\ndescription: A skill.\n---\n").unwrap();
        let source = Source::Directory {
            path: directory.path().join("skills"),
            scope: Scope::Project,
        };
        let catalog = Repository::open(vec![source], ScanOptions::default()).catalog();
        let (outer, inner) = (catalog.get("one").unwrap(), catalog.get("inner").unwrap());
        let freezer = SkillFreezer::new(SnapshotStore::new(directory.path().join("snapshots")), true);
        let before = [wait_until_reused(&freezer, outer), wait_until_reused(&freezer, inner)];
        fs::write(deep.join("a.sh"), "echo new\n").unwrap();
        for (entry, before) in [outer, inner].into_iter().zip(before) {
            assert_ne!(freezer.freeze(entry, &|| false).unwrap().digest(), before.digest());
        }
    }

    #[test]
    fn a_directory_that_appears_during_freezing_reaches_the_next_run() {
        for round in 0..50 {
            let (directory, catalog) = skill_fixture();
            let freezer = SkillFreezer::new(SnapshotStore::new(directory.path().join("snapshots")), true);
            let entry = catalog.get("one").unwrap();
            let new = directory.path().join("skills/one/scripts/new");
            std::thread::scope(|scope| {
                let created = scope.spawn(|| {
                    std::thread::sleep(std::time::Duration::from_micros(round * 20));
                    fs::create_dir(&new).unwrap();
                });
                freezer.freeze(entry, &|| false).unwrap();
                created.join().unwrap();
            });
            freezer.freeze(entry, &|| false).unwrap();
            let digest = |text: &str| {
                fs::write(new.join("file"), text).unwrap();
                freezer.freeze(entry, &|| false).unwrap().digest()
            };
            assert_ne!(digest("one"), digest("two"), "round {round}");
        }
    }

    #[test]
    fn threads_that_freeze_during_an_edit_store_nothing_old() {
        let (directory, catalog) = skill_fixture();
        let freezer = SkillFreezer::new(SnapshotStore::new(directory.path().join("snapshots")), true);
        let entry = catalog.get("one").unwrap();
        let script = directory.path().join("skills/one/scripts/deep/a.sh");
        for round in 0..100 {
            let text = format!("echo {round}\n");
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| freezer.freeze(entry, &|| false).unwrap());
                }
                fs::write(&script, &text).unwrap();
                assert_eq!(script_text(&freezer.freeze(entry, &|| false).unwrap()), text);
            });
            assert_eq!(script_text(&freezer.freeze(entry, &|| false).unwrap()), text);
        }
    }
}
