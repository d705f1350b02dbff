//! Removes snapshots that were not used for long, or that take too much space together.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, SystemTime};

use skillbox_model::Digest;

use super::retention::{SnapshotRetention, SnapshotUsage};
use super::store::PARTIAL_PREFIX;
use super::use_lock::remove_if_unused;
use super::{SnapshotError, SnapshotStore};
use crate::workspace::{remove_tree, tree_usage};

struct StoredSnapshot {
    digest: Digest,
    last_use: SystemTime,
    bytes: u64,
}

/// How often a process that writes snapshots removes old ones.
const COLLECTION_INTERVAL: Duration = Duration::from_secs(24 * 3600);

/// Its modification time is the time of the last collection.
const COLLECTION_FILE: &str = "last-collection";

impl SnapshotStore {
    /// All snapshots and the space that they use.
    pub fn usage(&self) -> Result<SnapshotUsage, SnapshotError> {
        let stored = self.list()?;
        Ok(SnapshotUsage {
            snapshots: stored.len(),
            bytes: stored.iter().map(|snapshot| snapshot.bytes).sum(),
        })
    }

    /// Removes snapshots that nobody uses and that need not be kept. Returns what was removed.
    pub fn collect(&self, retention: &SnapshotRetention) -> Result<SnapshotUsage, SnapshotError> {
        let now = SystemTime::now();
        let mut stored = self.list()?;
        stored.sort_unstable_by_key(|snapshot| snapshot.last_use);
        let mut total: u64 = stored.iter().map(|snapshot| snapshot.bytes).sum();
        let mut removed = SnapshotUsage::default();
        for snapshot in stored {
            let age = now.duration_since(snapshot.last_use).unwrap_or_default();
            if age < retention.max_age && total <= retention.max_bytes.bytes() {
                continue;
            }
            if self.remove_if_unused(&snapshot.digest)? {
                total = total.saturating_sub(snapshot.bytes);
                removed.snapshots += 1;
                removed.bytes += snapshot.bytes;
            }
        }
        Ok(removed)
    }

    /// Like [`collect`](Self::collect), but at most once a day for all processes, and failures are only logged. For
    /// processes that write snapshots and run no collection of their own.
    pub(super) fn collect_if_due(&self) {
        let marker = self.root().join(COLLECTION_FILE);
        let age = fs::metadata(&marker)
            .and_then(|found| found.modified())
            .map(|time| time.elapsed());
        if age.is_ok_and(|age| age.unwrap_or_default() < COLLECTION_INTERVAL) {
            return;
        }
        let collected = fs::write(&marker, "")
            .map_err(SnapshotError::io("write", &marker))
            .and_then(|()| self.collect(&self.retention));
        if let Err(error) = collected {
            tracing::warn!(%error, "old snapshots of skills cannot be removed");
        }
    }

    /// Removes a snapshot, unless somebody uses it.
    pub(super) fn remove_if_unused(&self, digest: &Digest) -> Result<bool, SnapshotError> {
        let path = self.snapshot_path(digest);
        let renamed = format!("{PARTIAL_PREFIX}removed-{}-{}", std::process::id(), digest.hex());
        let removed = remove_if_unused(&self.use_path(digest), || {
            // A snapshot disappears at once or not at all.
            fs::rename(&path, self.root().join(&renamed))?;
            match fs::remove_file(self.hidden_entries_path(digest)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            }
        });
        let removed = removed.map_err(SnapshotError::io("remove", &path))?;
        if removed.is_none() {
            return Ok(false);
        }
        let root = fs::File::open(self.root()).map_err(SnapshotError::io("open", self.root()))?;
        remove_tree(root.as_fd(), renamed.as_bytes())
            .map_err(|error| SnapshotError::io("remove", &path)(error.into()))?;
        Ok(true)
    }

    fn list(&self) -> Result<Vec<StoredSnapshot>, SnapshotError> {
        let entries = match fs::read_dir(self.root()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(SnapshotError::io("list", self.root())(error)),
        };
        let digests = entries.flatten().filter_map(|entry| {
            let name = entry.file_name();
            Digest::parse(&format!("sha256:{}", name.to_str()?.strip_prefix("sha256-")?)).ok()
        });
        // Another process may remove a snapshot meanwhile.
        Ok(digests.filter_map(|digest| self.describe(digest).ok()).collect())
    }

    fn describe(&self, digest: Digest) -> io::Result<StoredSnapshot> {
        let path = self.snapshot_path(&digest);
        let modified = |path: &Path| fs::metadata(path).and_then(|found| found.modified());
        Ok(StoredSnapshot {
            digest,
            last_use: modified(&self.use_path(&digest)).or_else(|_| modified(&path))?,
            bytes: tree_usage(fs::File::open(&path)?.as_fd(), u64::MAX).0,
        })
    }
}

#[cfg(test)]
mod tests {
    use skillbox_model::{ByteSize, RelPath};

    use super::super::Snapshot;
    use super::*;

    fn store(directory: &tempfile::TempDir) -> SnapshotStore {
        SnapshotStore::new(directory.path())
    }

    /// Writes a snapshot with one file, under its true digest.
    fn write(store: &SnapshotStore, text: &str) -> Snapshot {
        let mut writer = store.new_writer().unwrap();
        let path = RelPath::parse("a").unwrap();
        writer.add_file(&path, 0o644, &mut text.as_bytes()).unwrap();
        let digest = digest_of_one_file(text);
        writer
            .commit(&Digest::parse(&format!("sha256:{digest}")).unwrap())
            .unwrap()
    }

    /// The digest of a tree with this one file, computed from its definition.
    fn digest_of_one_file(text: &str) -> String {
        use sha2::{Digest as _, Sha256};
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let content = hex(&Sha256::digest(text));
        hex(&Sha256::digest(format!("skillbox-tree/1\0f {content} a\0")))
    }

    fn age(store: &SnapshotStore, digest: &Digest, days: u64) {
        let file = fs::File::options().write(true).open(store.use_path(digest)).unwrap();
        let time = SystemTime::now() - Duration::from_secs(days * 24 * 3600);
        file.set_modified(time).unwrap();
    }

    #[test]
    fn old_snapshots_are_removed_and_those_in_use_stay() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(&directory);
        let kept = write(&store, "kept");
        let old = write(&store, "old").digest();
        let new = write(&store, "new").digest();
        age(&store, &kept.digest(), 90);
        age(&store, &old, 90);
        let removed = store.collect(&SnapshotRetention::default()).unwrap();
        assert_eq!(removed.snapshots, 1);
        assert!(store.open(&old).unwrap().is_none());
        assert_eq!(kept.read_head(&RelPath::parse("a").unwrap()).unwrap(), b"kept");
        assert!(store.open(&new).unwrap().is_some());
        assert_eq!(store.usage().unwrap().snapshots, 2);
    }

    #[test]
    fn the_longest_unused_snapshots_are_removed_until_the_others_fit() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(&directory);
        let digests: Vec<Digest> = (1..5_u64)
            .map(|number| {
                let digest = write(&store, &number.to_string().repeat(100_000)).digest();
                age(&store, &digest, number);
                digest
            })
            .collect();
        let retention = SnapshotRetention {
            max_bytes: ByteSize(250_000),
            ..SnapshotRetention::default()
        };
        store.collect(&retention).unwrap();
        let is_kept: Vec<bool> = digests
            .iter()
            .map(|digest| store.open(digest).unwrap().is_some())
            .collect();
        assert_eq!(is_kept, [true, true, false, false]);
    }

    #[test]
    fn a_snapshot_of_an_earlier_boot_is_verified() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(&directory);
        let forget_boot = |digest: &Digest| fs::write(store.use_path(digest), "another boot").unwrap();
        let file = |digest: &Digest| store.snapshot_path(digest).join("a");
        let digest = write(&store, "right").digest();
        forget_boot(&digest);
        assert!(store.open(&digest).unwrap().is_some());
        // In the same boot, the files are known to be right, and are not read again.
        let replace = |digest: &Digest| {
            fs::remove_file(file(digest)).unwrap();
            fs::write(file(digest), "").unwrap();
        };
        replace(&digest);
        assert!(store.open(&digest).unwrap().is_some());
        forget_boot(&digest);
        assert!(store.open(&digest).unwrap().is_none(), "an empty file after a crash");
        assert!(write(&store, "right").digest() == digest);
    }
}
