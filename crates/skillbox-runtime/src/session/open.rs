//! One session, opened.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use skillbox_executor::workspace::{Backing, Owner, Workspace};
use skillbox_model::SessionId;

use super::{Remembered, SessionError, SessionRecord, uses};

const RECORD: &str = "session.json";
/// How a workspace is open to its user.
const OPEN: u32 = 0o755;

/// A session's files. Several processes may have it open at once; each change takes a lock for itself.
#[derive(Debug)]
pub struct OpenSession {
    id: SessionId,
    path: PathBuf,
    owner: Option<Owner>,
}

/// Held while a run uses the workspace; another run of the session waits.
#[derive(Debug)]
pub struct RunLock(File);

impl Drop for RunLock {
    fn drop(&mut self) {
        // Closing the file unlocks it as well; this only says so.
        let _closing = self.0.unlock();
    }
}

impl OpenSession {
    pub(super) fn open(id: SessionId, path: PathBuf, owner: Option<Owner>) -> Result<Self, SessionError> {
        if let Some(known) = Self::known(&id, &path, owner) {
            return Ok(known);
        }
        let session = Self { id, path, owner };
        session.change(RECORD, |record: &mut Option<SessionRecord>| {
            record.get_or_insert_with(|| SessionRecord::new(session.id.clone()));
        })?;
        Ok(session)
    }

    /// A session that is there already.
    pub(super) fn known(id: &SessionId, path: &Path, owner: Option<Owner>) -> Option<Self> {
        path.join(RECORD).exists().then(|| Self {
            id: id.clone(),
            path: path.to_owned(),
            owner,
        })
    }

    /// The session's name.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What is known of it.
    pub fn record(&self) -> Result<SessionRecord, SessionError> {
        let record: Option<SessionRecord> = self.read(RECORD)?;
        let mut record = record.ok_or_else(|| SessionError::Unknown(self.id.clone()))?;
        uses::add_to(&mut record, &self.path).map_err(SessionError::io("look at the uses of", &self.path))?;
        Ok(record)
    }

    /// Notes that a run uses it.
    pub fn note_run(&self) -> Result<(), SessionError> {
        uses::note_run(&self.path).map_err(SessionError::io("note a run in", &self.path))
    }

    /// Notes that it was used otherwise.
    pub fn note_use(&self) -> Result<(), SessionError> {
        uses::note_use(&self.path).map_err(SessionError::io("note a use in", &self.path))
    }

    /// The workspace, made on its first use and given to the script's user.
    pub fn workspace(&self) -> Result<Workspace, SessionError> {
        let path = self.path.join("workspace");
        // Mostly it is there as it should be, and looking is cheaper than making it so again.
        let root = match open_as_it_should_be(&path) {
            Some(root) => root,
            None => self.make_workspace(&path)?,
        };
        Ok(Workspace::new(root.into(), self.owner, Backing::Disk))
    }

    fn make_workspace(&self, path: &Path) -> Result<File, SessionError> {
        match DirBuilder::new().mode(OPEN).create(path) {
            Ok(()) => {
                if let Some(owner) = self.owner {
                    std::os::unix::fs::lchown(path, Some(owner.uid), Some(owner.gid))
                        .map_err(SessionError::io("change the owner of", path))?;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(SessionError::io("create", path)(error)),
        }
        // A former run may have locked the next one out of its own workspace.
        fs::set_permissions(path, fs::Permissions::from_mode(OPEN)).map_err(SessionError::io("open up", path))?;
        File::open(path).map_err(SessionError::io("open", path))
    }

    /// Waits for other runs of this session, at most so long, or until it is given up.
    pub fn lock_run(&self, at_most: Duration, is_given_up: impl Fn() -> bool) -> Result<RunLock, SessionError> {
        let end = Instant::now() + at_most;
        loop {
            if let Some(lock) = self.try_lock_run()? {
                return Ok(lock);
            }
            if Instant::now() >= end || is_given_up() {
                return Err(SessionError::Busy(self.id.clone()));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The lock, where no other run holds it.
    pub fn try_lock_run(&self) -> Result<Option<RunLock>, SessionError> {
        let path = self.path.join("run.lock");
        let file = lock_file(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(RunLock(file))),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(SessionError::io("lock", &path)(error)),
        }
    }

    /// A value kept in a file of the session.
    pub fn read<T: DeserializeOwned>(&self, file: &str) -> Result<Option<T>, SessionError> {
        let path = self.path.join(file);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(SessionError::io("read", &path)(error)),
        };
        serde_json::from_slice(&text).map_err(|source| SessionError::Damaged { path, source })
    }

    /// Changes a value kept in a file: read, changed and replaced under a lock, so that two changes at once both
    /// land, and a reader sees the old or the new value, never a part.
    pub fn change<T, R>(&self, file: &str, change: impl FnOnce(&mut Option<T>) -> R) -> Result<R, SessionError>
    where
        T: DeserializeOwned + Serialize,
    {
        self.try_change(file, |mut value| {
            let result = change(&mut value);
            Ok((result, value))
        })
    }

    /// The same for a change that may fail, or find that nothing changes: then the file stays as it is.
    pub fn try_change<T, R, E>(
        &self,
        file: &str,
        change: impl FnOnce(Option<T>) -> Result<(R, Option<T>), E>,
    ) -> Result<R, E>
    where
        T: DeserializeOwned + Serialize,
        E: From<SessionError>,
    {
        let _alone = self.lock_file_of(file)?;
        let (result, changed) = change(self.read(file)?)?;
        if let Some(changed) = changed {
            self.replace(file, &changed)?;
        }
        Ok(result)
    }

    /// The same with a value that is read only where somebody else has changed it.
    pub(crate) fn try_change_known<T, R, E>(
        &self,
        file: &str,
        memory: &Remembered<T>,
        change: impl FnOnce(Option<T>) -> Result<(R, Option<T>), E>,
    ) -> Result<R, E>
    where
        T: Clone + DeserializeOwned + Serialize,
        E: From<SessionError>,
    {
        let _alone = self.lock_file_of(file)?;
        let (result, changed) = change(memory.read(&self.path.join(file))?)?;
        if let Some(changed) = changed {
            let written = self.replace(file, &changed)?;
            memory.note(written, changed);
        }
        Ok(result)
    }

    /// Nobody else changes the file until the lock is dropped.
    fn lock_file_of(&self, file: &str) -> Result<File, SessionError> {
        let path = self.path.join(format!("{file}.lock"));
        let lock = lock_file(&path)?;
        lock.lock().map_err(SessionError::io("lock", &path))?;
        Ok(lock)
    }

    fn replace<T: Serialize>(&self, file: &str, value: &T) -> Result<File, SessionError> {
        let path = self.path.join(file);
        let text = serde_json::to_vec(value).map_err(|source| SessionError::Damaged {
            path: path.clone(),
            source,
        })?;
        let mut temp =
            tempfile::NamedTempFile::new_in(&self.path).map_err(SessionError::io("create a file in", &self.path))?;
        temp.write_all(&text).map_err(SessionError::io("write", &path))?;
        temp.persist(&path)
            .map_err(|error| SessionError::io("replace", &path)(error.error))
    }
}

fn open_as_it_should_be(workspace: &Path) -> Option<File> {
    let root = File::open(workspace).ok()?;
    let mode = root.metadata().ok()?.permissions().mode();
    (mode & 0o7777 == OPEN).then_some(root)
}

fn lock_file(path: &Path) -> Result<File, SessionError> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(SessionError::io("open", path))
}

#[cfg(test)]
mod tests {
    use super::super::SessionStore;
    use super::*;

    fn id(text: &str) -> SessionId {
        SessionId::parse(text).unwrap()
    }

    #[test]
    fn changes_at_once_all_land() {
        let directory = tempfile::tempdir().unwrap();
        let store = SessionStore::new(directory.path(), None);
        std::thread::scope(|scope| {
            for number in 0..8_u32 {
                let store = &store;
                scope.spawn(move || {
                    let session = store.open_or_create(&id("s1")).unwrap();
                    session
                        .change("numbers.json", |numbers: &mut Option<Vec<u32>>| {
                            numbers.get_or_insert_default().push(number);
                        })
                        .unwrap();
                });
            }
        });
        let mut numbers: Vec<u32> = store.open(&id("s1")).unwrap().read("numbers.json").unwrap().unwrap();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..8).collect::<Vec<_>>());
    }

    #[test]
    fn a_running_session_is_busy_and_a_removed_one_begins_anew() {
        let directory = tempfile::tempdir().unwrap();
        let store = SessionStore::new(directory.path(), None);
        let session = store.open_or_create(&id("s1")).unwrap();
        let lock = session.lock_run(Duration::ZERO, || false).unwrap();
        assert!(matches!(
            session.lock_run(Duration::from_millis(20), || false),
            Err(SessionError::Busy(_))
        ));
        assert!(matches!(store.remove(&id("s1")), Err(SessionError::Busy(_))));
        drop(lock);
        session.workspace().unwrap();
        fs::write(directory.path().join("s1/workspace/old"), "").unwrap();
        store.remove(&id("s1")).unwrap();
        assert!(matches!(store.open(&id("s1")), Err(SessionError::Unknown(_))));
        store.open_or_create(&id("s1")).unwrap().workspace().unwrap();
        assert!(!directory.path().join("s1/workspace/old").exists());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_session_is_made_once() {
        let directory = tempfile::tempdir().unwrap();
        let store = SessionStore::new(directory.path().join("sessions"), None);
        store.create(&id("s1")).unwrap();
        assert!(matches!(store.create(&id("s1")), Err(SessionError::Exists(_))));
        assert_eq!(store.count().unwrap(), 1);
    }

    #[test]
    fn idle_sessions_are_forgotten_and_busy_ones_kept() {
        let directory = tempfile::tempdir().unwrap();
        let store = SessionStore::new(directory.path(), None);
        let busy = store.open_or_create(&id("busy")).unwrap();
        let _lock = busy.lock_run(Duration::ZERO, || false).unwrap();
        store.open_or_create(&id("idle")).unwrap();
        assert!(store.collect_garbage(Duration::from_secs(60)).unwrap().is_empty());
        assert_eq!(store.collect_garbage(Duration::ZERO).unwrap(), [id("idle")]);
        assert_eq!(store.list().unwrap().len(), 1);
    }
}
