//! Caches the parsed value of a session's JSON file until the file changes.
//!
//! Files of a session are replaced, never rewritten in place, so the same inode means the same content. The cache keeps
//! the file open, so that the kernel cannot give its inode number to another file. The size and the modification time
//! reveal a file that was edited in place.
//!
//! One stat(2) replaces reading and parsing `state.json` on every tool call.
//! Gain: to be measured (`skillbox-bench serve`, tool calls over MCP, whose sessions are stored).

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::de::DeserializeOwned;

use super::SessionError;

/// The value that was read or written last.
#[derive(Debug)]
pub(crate) struct FileCache<T>(Mutex<Option<CachedFile<T>>>);

#[derive(Debug)]
struct CachedFile<T> {
    value: T,
    identity: FileIdentity,
    _file: File,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileIdentity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl<T> Default for FileCache<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T: Clone + DeserializeOwned> FileCache<T> {
    /// The current value; the file is read only if it is not the cached one.
    pub(super) fn read(&self, path: &Path) -> Result<Option<T>, SessionError> {
        let current = match fs::metadata(path) {
            Ok(metadata) => FileIdentity::of(&metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(SessionError::io("inspect", path)(error)),
        };
        let cached = {
            let cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            cached
                .as_ref()
                .filter(|cached| cached.identity == current)
                .map(|cached| cached.value.clone())
        };
        if cached.is_some() {
            return Ok(cached);
        }
        let mut file = File::open(path).map_err(SessionError::io("open", path))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(SessionError::io("read", path))?;
        let value: T = serde_json::from_slice(&text).map_err(|source| SessionError::Damaged {
            path: path.to_owned(),
            source,
        })?;
        self.store(file, value.clone());
        Ok(Some(value))
    }

    /// Caches the value that a file contains.
    pub(super) fn store(&self, file: File, value: T) {
        let cached = file.metadata().ok().map(|metadata| CachedFile {
            value,
            identity: FileIdentity::of(&metadata),
            _file: file,
        });
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = cached;
    }
}

impl FileIdentity {
    fn of(file: &Metadata) -> Self {
        Self {
            device: file.dev(),
            inode: file.ino(),
            size: file.size(),
            modified: (file.mtime(), file.mtime_nsec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::SessionStore;
    use super::*;

    type Numbers = Vec<u32>;

    #[test]
    fn changes_of_other_processes_and_by_hand_are_seen() {
        let directory = tempfile::tempdir().unwrap();
        let store = SessionStore::new(directory.path(), None);
        let id = skillbox_model::SessionId::parse("s1").unwrap();
        let (this_process, other_process) = (store.open_or_create(&id).unwrap(), store.open(&id).unwrap());
        let path = directory.path().join("s1/numbers.json");
        let cache = FileCache::<Numbers>::default();
        let read = || cache.read(&path).unwrap();
        let push = |number: u32| {
            let pushed = this_process.try_update_cached_file("numbers.json", &cache, |numbers: Option<Numbers>| {
                let mut numbers = numbers.unwrap_or_default();
                numbers.push(number);
                Ok::<_, SessionError>(((), Some(numbers)))
            });
            pushed.unwrap();
        };
        assert_eq!(read(), None);
        push(1);
        assert_eq!(read(), Some(vec![1]));
        // Often enough that the file system reuses an inode number.
        for number in 2..50 {
            let changed = other_process.update_file("numbers.json", |numbers: &mut Option<Numbers>| {
                numbers.get_or_insert_default().push(number);
            });
            changed.unwrap();
            assert_eq!(read().unwrap().last(), Some(&number));
        }
        push(50);
        assert_eq!(read(), Some((1..=50).collect()));
        fs::write(&path, "[7]").unwrap();
        assert_eq!(read(), Some(vec![7]), "rewritten in place");
        fs::remove_file(&path).unwrap();
        assert_eq!(read(), None);
    }
}
