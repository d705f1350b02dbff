//! A value of a session that stays in memory while its file is the same.
//!
//! Files of a session are replaced, never written over, so a file that still has its name still has its content. It
//! is kept open meanwhile: no other file can then have its number.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::de::DeserializeOwned;

use super::SessionError;

/// What was read or written last.
#[derive(Debug)]
pub(crate) struct Remembered<T>(Mutex<Option<Seen<T>>>);

#[derive(Debug)]
struct Seen<T> {
    value: T,
    identity: Identity,
    _file: File,
}

/// Which file it was. Its size and time tell where somebody wrote over it by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    number: u64,
    size: u64,
    changed: (i64, i64),
}

impl<T> Default for Remembered<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T: Clone + DeserializeOwned> Remembered<T> {
    /// The value as it is now, read only where the file is another one.
    pub(super) fn read(&self, path: &Path) -> Result<Option<T>, SessionError> {
        let now = match fs::metadata(path) {
            Ok(now) => Identity::of(&now),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(SessionError::io("look at", path)(error)),
        };
        let known = {
            let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            seen.as_ref()
                .filter(|seen| seen.identity == now)
                .map(|seen| seen.value.clone())
        };
        if known.is_some() {
            return Ok(known);
        }
        let mut file = File::open(path).map_err(SessionError::io("open", path))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(SessionError::io("read", path))?;
        let value: T = serde_json::from_slice(&text).map_err(|source| SessionError::Damaged {
            path: path.to_owned(),
            source,
        })?;
        self.note(file, value.clone());
        Ok(Some(value))
    }

    /// Remembers what a file holds.
    pub(super) fn note(&self, file: File, value: T) {
        let seen = file.metadata().ok().map(|known| Seen {
            value,
            identity: Identity::of(&known),
            _file: file,
        });
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = seen;
    }
}

impl Identity {
    fn of(file: &Metadata) -> Self {
        Self {
            device: file.dev(),
            number: file.ino(),
            size: file.size(),
            changed: (file.mtime(), file.mtime_nsec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::SessionStore;
    use super::*;

    type Numbers = Vec<u32>;

    #[test]
    fn what_others_change_is_seen_and_what_they_leave_is_not_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let store = SessionStore::new(directory.path(), None);
        let id = skillbox_model::SessionId::parse("s1").unwrap();
        let (ours, theirs) = (store.open_or_create(&id).unwrap(), store.open(&id).unwrap());
        let path = directory.path().join("s1/numbers.json");
        let memory = Remembered::<Numbers>::default();
        let read = || memory.read(&path).unwrap();
        let push = |number: u32| {
            let pushed = ours.try_change_known("numbers.json", &memory, |numbers: Option<Numbers>| {
                let mut numbers = numbers.unwrap_or_default();
                numbers.push(number);
                Ok::<_, SessionError>(((), Some(numbers)))
            });
            pushed.unwrap();
        };
        assert_eq!(read(), None);
        push(1);
        assert_eq!(read(), Some(vec![1]));
        // Many times, so that a number of a file comes up again.
        for number in 2..50 {
            let theirs = theirs.change("numbers.json", |numbers: &mut Option<Numbers>| {
                numbers.get_or_insert_default().push(number);
            });
            theirs.unwrap();
            assert_eq!(read().unwrap().last(), Some(&number));
        }
        push(50);
        assert_eq!(read(), Some((1..=50).collect()));
        fs::write(&path, "[7]").unwrap();
        assert_eq!(read(), Some(vec![7]), "written over by hand");
        fs::remove_file(&path).unwrap();
        assert_eq!(read(), None);
    }
}
