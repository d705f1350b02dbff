//! Removes blobs on a local disk that no record refers to.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;
use skillbox_model::Digest;

use crate::error::io_error;
use crate::local_store::{LocalStore, for_each_record};
use crate::{StoreError, layout};

/// The amount of content that the garbage collector freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FreedContent {
    /// The number of freed blobs.
    #[serde(rename = "contents")]
    pub blobs: usize,
    /// Their total size.
    pub bytes: u64,
}

impl LocalStore {
    /// Removes blobs without a record, and the remains of interrupted writers. Nothing is removed if a record cannot be
    /// read, because it may refer to any blob, or if writers hold their lock for too long.
    pub(crate) fn collect_garbage(&self) -> Result<FreedContent, StoreError> {
        if self.unreferenced_blobs()?.is_empty() && self.blobs().abandoned_temp_files()?.is_empty() {
            return Ok(FreedContent::default());
        }
        let Some(_lock) = self.blobs().lock_for_collection()? else {
            return Ok(FreedContent::default());
        };
        // No writer is active now, and earlier writers have created their records.
        for path in self.blobs().abandoned_temp_files()? {
            remove_if_present(&path)?;
        }
        let mut report = FreedContent::default();
        for digest in self.unreferenced_blobs()? {
            let path = self.blobs().blob_path(&digest);
            report.bytes += fs::metadata(&path).map_or(0, |meta| meta.len());
            report.blobs += 1;
            remove_if_present(&path)?;
        }
        Ok(report)
    }

    fn unreferenced_blobs(&self) -> Result<BTreeSet<Digest>, StoreError> {
        let mut digests = self.blobs().list_digests()?;
        if !digests.is_empty() {
            for_each_record(&self.root().join(layout::ARTIFACTS), &mut |artifact| {
                digests.remove(&artifact.sha256);
            })?;
        }
        Ok(digests)
    }
}

fn remove_if_present(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error("remove", path)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::PathBuf;
    use std::thread;

    use skillbox_model::SessionId;
    use tempfile::TempDir;

    use super::*;
    use crate::{Artifact, ArtifactMetadata, ArtifactName, ArtifactRef, Scope, Store};

    struct Fixture {
        directory: TempDir,
        store: Store,
    }

    impl Fixture {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let store = Store::new(directory.path());
            Self { directory, store }
        }

        fn put(&self, scope: &Scope, name: &str, content: &str) -> Artifact {
            let name = ArtifactName::parse(name).unwrap();
            self.store
                .put(scope, &name, &mut content.as_bytes(), ArtifactMetadata::default())
                .unwrap()
        }

        fn remove(&self, reference: &str) {
            let reference = ArtifactRef::parse(reference).unwrap();
            self.store.remove(&Scope::User, &reference).unwrap();
        }

        fn blob_paths(&self) -> Vec<PathBuf> {
            let below = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
            below(&self.directory.path().join("cas/sha256"))
                .flat_map(|entry| below(&entry.path()))
                .map(|entry| entry.path())
                .collect()
        }
    }

    #[test]
    fn content_is_freed_with_its_last_version() {
        let fixture = Fixture::new();
        let session = Scope::Session(SessionId::parse("s").unwrap());
        fixture.put(&Scope::User, "a", "shared");
        fixture.put(&Scope::User, "deep/b", "shared");
        fixture.put(&session, "c", "of the session");
        fixture.put(&Scope::User, "kept", "kept");
        assert_eq!(fixture.store.collect_garbage().unwrap(), FreedContent::default());
        fixture.remove("a");
        assert_eq!(fixture.store.collect_garbage().unwrap(), FreedContent::default());
        fixture.remove("deep/b@0");
        let report = |blobs, bytes| FreedContent { blobs, bytes };
        assert_eq!(fixture.store.collect_garbage().unwrap(), report(1, 6));
        fixture.store.remove_scope(&session).unwrap();
        assert_eq!(fixture.store.collect_garbage().unwrap(), report(1, 14));
        assert_eq!(fixture.blob_paths().len(), 1);
        // The same content can be stored again, as the next version.
        assert_eq!(fixture.put(&Scope::User, "a", "shared").version, 1);
    }

    #[test]
    fn an_unreadable_record_prevents_collection() {
        let fixture = Fixture::new();
        fixture.put(&Scope::User, "removed", "unreferenced");
        fixture.put(&Scope::User, "damaged", "referenced");
        fixture.remove("removed");
        let record = fixture.directory.path().join("artifacts/user/n-damaged/v000000.json");
        let text = fs::read(&record).unwrap();
        fs::write(&record, "{").unwrap();
        let error = fixture.store.collect_garbage().unwrap_err();
        assert!(matches!(error, StoreError::Record { .. }), "{error}");
        assert_eq!(fixture.blob_paths().len(), 2);
        fs::write(&record, text).unwrap();
        assert_eq!(fixture.store.collect_garbage().unwrap().blobs, 1);
    }

    #[test]
    fn old_files_of_interrupted_writers_are_removed() {
        let fixture = Fixture::new();
        fixture.put(&Scope::User, "kept", "kept");
        let (old, new) = (
            fixture.directory.path().join("tmp/old"),
            fixture.directory.path().join("tmp/new"),
        );
        let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(2 * 24 * 3600);
        File::create(&old).unwrap().set_modified(long_ago).unwrap();
        File::create(&new).unwrap();
        assert_eq!(fixture.store.collect_garbage().unwrap(), FreedContent::default());
        assert!(!old.exists() && new.exists());
    }

    /// Every writer stores the same content, which usually exists already. If the collector removed it at that moment,
    /// the record would refer to a missing blob.
    #[test]
    fn content_of_concurrent_writers_is_not_freed() {
        let fixture = Fixture::new();
        thread::scope(|scope| {
            for writer in 0..3 {
                let fixture = &fixture;
                scope.spawn(move || {
                    let name = format!("name-{writer}");
                    for _ in 0..200 {
                        let artifact = fixture.put(&Scope::User, &name, "the same");
                        let mut content = fixture.store.open(&artifact).unwrap();
                        assert_eq!(io::read_to_string(&mut content).unwrap(), "the same");
                        fixture.remove(&name);
                    }
                });
            }
            scope.spawn(|| {
                for _ in 0..400 {
                    fixture.store.collect_garbage().unwrap();
                }
            });
        });
        fixture.store.collect_garbage().unwrap();
        assert_eq!(fixture.blob_paths(), [] as [PathBuf; 0]);
    }
}
