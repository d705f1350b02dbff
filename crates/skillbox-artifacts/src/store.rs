//! The store on a local disk.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest as _, Sha256};
use skillbox_model::{Digest, ErrorCode};

use crate::{Artifact, ArtifactName, ArtifactRef, CheckedContent, Origin, Scope, layout};

/// A store below one directory. Safe to share between threads and processes.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
}

/// Why the store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No such name, or no such version of it.
    #[error("no artifact {0} is stored")]
    Missing(ArtifactRef),
    /// A record that is not one.
    #[error("the record {} cannot be read", path.display())]
    Record {
        /// The record.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The disk said no.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The content itself could not be read to its end.
    #[error("cannot read the content to store as {name}")]
    Content {
        /// The name it was to have.
        name: ArtifactName,
        /// What the reader said.
        source: io::Error,
    },
}

impl StoreError {
    /// The stable code of this error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Missing(_) => ErrorCode::ArtifactMissing,
            _ => ErrorCode::Storage,
        }
    }
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io { action, path, source }
}

impl Store {
    /// A store below `root`, which is made when the first file comes.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Stores everything that `content` gives as the next version of `name`.
    pub fn put(
        &self,
        scope: &Scope,
        name: &ArtifactName,
        content: &mut dyn Read,
        origin: Origin,
    ) -> Result<Artifact, StoreError> {
        let (sha256, size_bytes) = self.write_blob(name, content)?;
        let mut artifact = Artifact {
            name: name.clone(),
            version: self.next_version(scope, name)?,
            size_bytes,
            sha256,
            mime_type: origin.mime_type,
            run_id: origin.run_id,
            created_unix_ms: now_unix_ms(),
        };
        self.claim_version(scope, &mut artifact)?;
        Ok(artifact)
    }

    /// The record that a reference means.
    pub fn resolve(&self, scope: &Scope, reference: &ArtifactRef) -> Result<Artifact, StoreError> {
        let missing = || StoreError::Missing(reference.clone());
        let version = match reference.version {
            Some(version) => version,
            None => *self
                .stored_versions(scope, &reference.name)?
                .last()
                .ok_or_else(missing)?,
        };
        self.read_record(scope, &reference.name, version)?.ok_or_else(missing)
    }

    /// The content of a stored version, checked against its digest to the last byte as it is read.
    pub fn open(&self, artifact: &Artifact) -> Result<CheckedContent, StoreError> {
        let path = self.root.join(layout::blob(&artifact.sha256));
        let file = File::open(&path).map_err(io_error("open", &path))?;
        Ok(CheckedContent::new(file, artifact.sha256))
    }

    /// The content of a stored version as a file, checked as a whole before it is handed out.
    pub fn open_checked_file(&self, artifact: &Artifact) -> Result<File, StoreError> {
        let path = self.root.join(layout::blob(&artifact.sha256));
        let mut content = self.open(artifact)?;
        io::copy(&mut content, &mut io::sink()).map_err(io_error("read", &path))?;
        File::open(&path).map_err(io_error("open", &path))
    }

    /// The versions of a name, oldest first.
    pub fn versions(&self, scope: &Scope, name: &ArtifactName) -> Result<Vec<Artifact>, StoreError> {
        let mut found = Vec::new();
        for version in self.stored_versions(scope, name)? {
            // A version that vanished since the listing was removed meanwhile.
            found.extend(self.read_record(scope, name, version)?);
        }
        Ok(found)
    }

    /// The newest version of every name, ordered by name.
    pub fn list(&self, scope: &Scope) -> Result<Vec<Artifact>, StoreError> {
        let mut names = Vec::new();
        collect_names(&self.root.join(layout::scope(scope)), "", &mut names)?;
        names.sort_unstable();
        let mut found = Vec::new();
        for name in names {
            if let Some(version) = self.stored_versions(scope, &name)?.last() {
                found.extend(self.read_record(scope, &name, *version)?);
            }
        }
        Ok(found)
    }

    /// Removes one version, or all of a name. Their numbers are never given again.
    pub fn remove(&self, scope: &Scope, reference: &ArtifactRef) -> Result<Vec<Artifact>, StoreError> {
        let removed = match reference.version {
            Some(_) => vec![self.resolve(scope, reference)?],
            None => self.versions(scope, &reference.name)?,
        };
        if removed.is_empty() {
            return Err(StoreError::Missing(reference.clone()));
        }
        let directory = self.root.join(layout::versions(scope, &reference.name));
        for artifact in &removed {
            let mark = directory.join(layout::version_file(artifact.version, layout::REMOVED));
            File::create(&mark).map_err(io_error("create", &mark))?;
            let record = directory.join(layout::version_file(artifact.version, layout::RECORD));
            fs::remove_file(&record).map_err(io_error("remove", &record))?;
        }
        Ok(removed)
    }

    /// Removes everything of a scope, its used numbers too: the scope itself is gone.
    pub fn remove_scope(&self, scope: &Scope) -> Result<(), StoreError> {
        let path = self.root.join(layout::scope(scope));
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error("remove", &path)(error)),
            _ => Ok(()),
        }
    }

    fn write_blob(&self, name: &ArtifactName, content: &mut dyn Read) -> Result<(Digest, u64), StoreError> {
        let waiting = self.root.join("tmp");
        fs::create_dir_all(&waiting).map_err(io_error("create", &waiting))?;
        let mut temp = tempfile::NamedTempFile::new_in(&waiting).map_err(io_error("create a file in", &waiting))?;
        let mut hasher = Sha256::new();
        let mut size = 0;
        let mut buffer = vec![0; 128 << 10];
        loop {
            let count = match content.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => {
                    return Err(StoreError::Content {
                        name: name.clone(),
                        source,
                    });
                }
            };
            hasher.update(&buffer[..count]);
            temp.write_all(&buffer[..count])
                .map_err(io_error("write to", temp.path()))?;
            size += count as u64;
        }
        let digest = Digest::from_sha256(hasher.finalize().into());
        let path = self.root.join(layout::blob(&digest));
        if !path.exists() {
            // Durable before it is visible: a record must never name a blob that a crash can lose.
            temp.as_file().sync_data().map_err(io_error("sync", temp.path()))?;
            let parent = path.parent().unwrap_or(&self.root);
            fs::create_dir_all(parent).map_err(io_error("create", parent))?;
            temp.persist(&path)
                .map_err(|error| io_error("create", &path)(error.error))?;
        }
        Ok((digest, size))
    }

    /// Creates the record; where another writer took the number first, tries the next one.
    fn claim_version(&self, scope: &Scope, artifact: &mut Artifact) -> Result<(), StoreError> {
        let directory = self.root.join(layout::versions(scope, &artifact.name));
        fs::create_dir_all(&directory).map_err(io_error("create", &directory))?;
        loop {
            let path = directory.join(layout::version_file(artifact.version, layout::RECORD));
            let removed = directory.join(layout::version_file(artifact.version, layout::REMOVED));
            let text = serde_json::to_vec_pretty(artifact).map_err(|source| StoreError::Record {
                path: path.clone(),
                source,
            })?;
            // A link appears with its whole content or not at all, and never replaces another.
            let waiting = self.root.join("tmp");
            let mut temp = tempfile::NamedTempFile::new_in(&waiting).map_err(io_error("create a file in", &waiting))?;
            temp.write_all(&text).map_err(io_error("write to", temp.path()))?;
            match fs::hard_link(temp.path(), &path) {
                Ok(()) if !removed.exists() => return Ok(()),
                Ok(()) => fs::remove_file(&path).map_err(io_error("remove", &path))?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(io_error("create", &path)(error)),
            }
            artifact.version += 1;
        }
    }

    fn next_version(&self, scope: &Scope, name: &ArtifactName) -> Result<u64, StoreError> {
        let used = self.used_versions(scope, name)?;
        Ok(used.iter().map(|(version, _)| version + 1).max().unwrap_or(0))
    }

    fn stored_versions(&self, scope: &Scope, name: &ArtifactName) -> Result<Vec<u64>, StoreError> {
        let mut stored: Vec<u64> = self
            .used_versions(scope, name)?
            .into_iter()
            .filter_map(|(version, is_record)| is_record.then_some(version))
            .collect();
        stored.sort_unstable();
        Ok(stored)
    }

    fn used_versions(&self, scope: &Scope, name: &ArtifactName) -> Result<Vec<(u64, bool)>, StoreError> {
        let path = self.root.join(layout::versions(scope, name));
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io_error("list", &path)(error)),
        };
        let mut used = Vec::new();
        for entry in entries {
            let entry = entry.map_err(io_error("list", &path))?;
            if let Some((version, extension)) = entry.file_name().to_str().and_then(layout::parse_version_file) {
                used.push((version, extension == layout::RECORD));
            }
        }
        Ok(used)
    }

    fn read_record(&self, scope: &Scope, name: &ArtifactName, version: u64) -> Result<Option<Artifact>, StoreError> {
        let directory = self.root.join(layout::versions(scope, name));
        let path = directory.join(layout::version_file(version, layout::RECORD));
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_error("read", &path)(error)),
        };
        serde_json::from_slice(&text)
            .map(Some)
            .map_err(|source| StoreError::Record { path, source })
    }
}

/// Finds the names below a scope: every directory that holds versions.
fn collect_names(directory: &Path, prefix: &str, names: &mut Vec<ArtifactName>) -> Result<(), StoreError> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io_error("list", directory)(error)),
    };
    let mut holds_versions = false;
    for entry in entries {
        let entry = entry.map_err(io_error("list", directory))?;
        let file_name = entry.file_name();
        let Some(text) = file_name.to_str() else { continue };
        holds_versions |= layout::parse_version_file(text).is_some();
        if let Some(part) = layout::name_part(text) {
            let below = if prefix.is_empty() {
                part.to_owned()
            } else {
                format!("{prefix}/{part}")
            };
            collect_names(&entry.path(), &below, names)?;
        }
    }
    if holds_versions {
        names.extend(ArtifactName::parse(prefix));
    }
    Ok(())
}

fn now_unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn name(text: &str) -> ArtifactName {
        ArtifactName::parse(text).unwrap()
    }

    fn put(store: &Store, text: &str, content: &[u8]) -> Artifact {
        store
            .put(&Scope::User, &name(text), &mut &content[..], Origin::default())
            .unwrap()
    }

    fn read(store: &Store, reference: &str) -> Vec<u8> {
        let artifact = store
            .resolve(&Scope::User, &ArtifactRef::parse(reference).unwrap())
            .unwrap();
        let mut content = Vec::new();
        store.open(&artifact).unwrap().read_to_end(&mut content).unwrap();
        content
    }

    #[test]
    fn versions_count_from_zero_and_stay_readable() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path());
        assert_eq!(put(&store, "a/b.txt", b"one").reference(), "artifact://a/b.txt@0");
        assert_eq!(put(&store, "a/b.txt", b"two").version, 1);
        assert_eq!(put(&store, "a", b"other").version, 0);
        assert_eq!(read(&store, "a/b.txt"), b"two");
        assert_eq!(read(&store, "a/b.txt@0"), b"one");
        let names: Vec<String> = store
            .list(&Scope::User)
            .unwrap()
            .iter()
            .map(|a| a.name.to_string())
            .collect();
        assert_eq!(names, ["a", "a/b.txt"]);
    }

    #[test]
    fn large_binary_content_comes_back_whole() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path());
        let content: Vec<u8> = (0..(5 << 20) + 7_u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        let artifact = put(&store, "big.bin", &content);
        assert_eq!(artifact.size_bytes, content.len() as u64);
        assert_eq!(read(&store, "big.bin"), content);
    }

    #[test]
    fn writers_at_once_get_a_version_each() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path());
        let versions: BTreeSet<u64> = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..16_u8)
                .map(|i| {
                    scope.spawn({
                        let store = &store;
                        move || put(store, "x", &[i]).version
                    })
                })
                .collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        assert_eq!(versions, (0..16).collect());
    }

    #[test]
    fn a_removed_number_is_never_given_again() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path());
        put(&store, "x", b"0");
        put(&store, "x", b"1");
        store.remove(&Scope::User, &ArtifactRef::parse("x@1").unwrap()).unwrap();
        assert_eq!(read(&store, "x"), b"0");
        assert_eq!(put(&store, "x", b"2").version, 2);
        store.remove(&Scope::User, &ArtifactRef::parse("x").unwrap()).unwrap();
        let gone = store
            .resolve(&Scope::User, &ArtifactRef::parse("x").unwrap())
            .unwrap_err();
        assert_eq!(gone.code(), ErrorCode::ArtifactMissing);
        assert!(store.remove(&Scope::User, &ArtifactRef::parse("x").unwrap()).is_err());
    }

    #[test]
    fn scopes_do_not_see_each_other() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path());
        put(&store, "x", b"0");
        let session = Scope::Session(skillbox_model::SessionId::parse("s1").unwrap());
        assert!(store.resolve(&session, &ArtifactRef::parse("x").unwrap()).is_err());
        assert!(store.list(&session).unwrap().is_empty());
    }

    #[test]
    fn damaged_content_is_told_at_its_end() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path());
        let artifact = put(&store, "x", b"right");
        fs::write(directory.path().join(layout::blob(&artifact.sha256)), b"wrong").unwrap();
        let error = store.open(&artifact).unwrap().read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn content_that_fails_midway_stores_nothing() {
        struct Broken(u32);
        impl Read for Broken {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                self.0 += 1;
                if self.0 == 1 {
                    Ok(buffer.len())
                } else {
                    Err(io::Error::other("gone"))
                }
            }
        }
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path());
        let put = store.put(&Scope::User, &name("x"), &mut Broken(0), Origin::default());
        assert!(matches!(put, Err(StoreError::Content { .. })));
        assert!(store.list(&Scope::User).unwrap().is_empty());
        assert_eq!(fs::read_dir(directory.path().join("tmp")).unwrap().count(), 0);
    }
}
