//! Content on a local disk that no record names any more.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;
use skillbox_model::Digest;

use crate::error::io_error;
use crate::local::{LocalStore, each_record_below};
use crate::{StoreError, layout};

/// What was freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Freed {
    /// How many contents.
    pub contents: usize,
    /// Their size.
    pub bytes: u64,
}

impl LocalStore {
    /// Frees the content that no version has, and what interrupted writers left. A record that cannot be read may name
    /// anything, so that nothing is freed then; nor is it while somebody always stores something.
    pub(crate) fn collect_garbage(&self) -> Result<Freed, StoreError> {
        if self.unnamed()?.is_empty() && self.blobs().unfinished()?.is_empty() {
            return Ok(Freed::default());
        }
        let Some(_alone) = self.blobs().lock_out_writers()? else {
            return Ok(Freed::default());
        };
        // Nobody stores anything now: whoever did while we looked has a record, and what is unfinished stays so.
        for path in self.blobs().unfinished()? {
            remove(&path)?;
        }
        let mut freed = Freed::default();
        for digest in self.unnamed()? {
            let path = self.blobs().path(&digest);
            freed.bytes += fs::metadata(&path).map_or(0, |meta| meta.len());
            freed.contents += 1;
            remove(&path)?;
        }
        Ok(freed)
    }

    fn unnamed(&self) -> Result<BTreeSet<Digest>, StoreError> {
        let mut digests = self.blobs().all()?;
        if !digests.is_empty() {
            each_record_below(&self.root().join(layout::ARTIFACTS), &mut |artifact| {
                digests.remove(&artifact.sha256);
            })?;
        }
        Ok(digests)
    }
}

fn remove(path: &Path) -> Result<(), StoreError> {
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
    use crate::{Artifact, ArtifactName, ArtifactRef, Origin, Scope, Store};

    struct World {
        place: TempDir,
        store: Store,
    }

    impl World {
        fn new() -> Self {
            let place = tempfile::tempdir().unwrap();
            let store = Store::new(place.path());
            Self { place, store }
        }

        fn put(&self, scope: &Scope, name: &str, content: &str) -> Artifact {
            let name = ArtifactName::parse(name).unwrap();
            self.store
                .put(scope, &name, &mut content.as_bytes(), Origin::default())
                .unwrap()
        }

        fn remove(&self, reference: &str) {
            let reference = ArtifactRef::parse(reference).unwrap();
            self.store.remove(&Scope::User, &reference).unwrap();
        }

        fn contents(&self) -> Vec<PathBuf> {
            let below = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
            below(&self.place.path().join("cas/sha256"))
                .flat_map(|entry| below(&entry.path()))
                .map(|entry| entry.path())
                .collect()
        }
    }

    #[test]
    fn content_goes_with_the_last_version_that_has_it() {
        let world = World::new();
        let session = Scope::Session(SessionId::parse("s").unwrap());
        world.put(&Scope::User, "a", "shared");
        world.put(&Scope::User, "deep/b", "shared");
        world.put(&session, "c", "of the session");
        world.put(&Scope::User, "kept", "kept");
        assert_eq!(world.store.collect_garbage().unwrap(), Freed::default());
        world.remove("a");
        assert_eq!(world.store.collect_garbage().unwrap(), Freed::default());
        world.remove("deep/b@0");
        let freed = |contents, bytes| Freed { contents, bytes };
        assert_eq!(world.store.collect_garbage().unwrap(), freed(1, 6));
        world.store.remove_scope(&session).unwrap();
        assert_eq!(world.store.collect_garbage().unwrap(), freed(1, 14));
        assert_eq!(world.contents().len(), 1);
        // The same content can come again, under the next number.
        assert_eq!(world.put(&Scope::User, "a", "shared").version, 1);
    }

    #[test]
    fn a_record_that_cannot_be_read_keeps_everything() {
        let world = World::new();
        world.put(&Scope::User, "gone", "unnamed");
        world.put(&Scope::User, "odd", "named");
        world.remove("gone");
        let record = world.place.path().join("artifacts/user/n-odd/v000000.json");
        let text = fs::read(&record).unwrap();
        fs::write(&record, "{").unwrap();
        let error = world.store.collect_garbage().unwrap_err();
        assert!(matches!(error, StoreError::Record { .. }), "{error}");
        assert_eq!(world.contents().len(), 2);
        fs::write(&record, text).unwrap();
        assert_eq!(world.store.collect_garbage().unwrap().contents, 1);
    }

    #[test]
    fn what_an_interrupted_writer_left_goes_when_it_is_old() {
        let world = World::new();
        world.put(&Scope::User, "kept", "kept");
        let (old, new) = (world.place.path().join("tmp/old"), world.place.path().join("tmp/new"));
        let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(2 * 24 * 3600);
        File::create(&old).unwrap().set_modified(long_ago).unwrap();
        File::create(&new).unwrap();
        assert_eq!(world.store.collect_garbage().unwrap(), Freed::default());
        assert!(!old.exists() && new.exists());
    }

    /// The same content again and again: each writer finds it there, and a collector that took it then would leave a
    /// record without content.
    #[test]
    fn nothing_is_taken_from_a_writer() {
        let world = World::new();
        thread::scope(|scope| {
            for writer in 0..3 {
                let world = &world;
                scope.spawn(move || {
                    let name = format!("name-{writer}");
                    for _ in 0..200 {
                        let artifact = world.put(&Scope::User, &name, "the same");
                        let mut content = world.store.open(&artifact).unwrap();
                        assert_eq!(io::read_to_string(&mut content).unwrap(), "the same");
                        world.remove(&name);
                    }
                });
            }
            scope.spawn(|| {
                for _ in 0..400 {
                    world.store.collect_garbage().unwrap();
                }
            });
        });
        world.store.collect_garbage().unwrap();
        assert_eq!(world.contents(), [] as [PathBuf; 0]);
    }
}
