//! One open session and its files.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use skillbox_executor::workspace::{Backing, Owner, Workspace};
use skillbox_model::{Limits, SessionId};

use super::file_cache::FileCache;
use super::image::{SessionImages, WORKSPACE_MODE};
use super::{SessionError, SessionRecord, usage};

const RECORD_FILE: &str = "session.json";
/// The workspace, if it is a file system of its own.
pub(super) const IMAGE_FILE: &str = "workspace.img";
/// The workspace, if it is a directory: a link to it, or itself.
pub(super) const WORKSPACE: &str = "workspace";
/// The directory beside the sessions that has the directories of their workspaces. No session id starts with a dot.
pub(super) const DIRECTORIES: &str = ".workspaces";

/// The files of a session. Several processes may have it open; each change takes a lock.
#[derive(Debug)]
pub struct OpenSession {
    id: SessionId,
    path: PathBuf,
    script_owner: Option<Owner>,
    images: Option<Arc<SessionImages>>,
}

/// What a new workspace of a session may be.
#[derive(Clone, Copy, Debug)]
pub enum NewWorkspace<'a> {
    /// A file system of its own with these limits where the host can give one, otherwise a directory.
    Limited(&'a Limits),
    /// A directory: the script sees the paths of the host.
    Directory,
}

/// Held while a run uses the workspace; other runs of the session wait for it.
#[derive(Debug)]
pub struct RunLock(File);

impl Drop for RunLock {
    fn drop(&mut self) {
        // Closing the file would unlock it as well; this makes it explicit.
        let _result = self.0.unlock();
    }
}

impl OpenSession {
    /// Opens the session in an existing directory, and writes its record if there is none.
    pub(super) fn open_or_create(
        id: SessionId,
        path: PathBuf,
        script_owner: Option<Owner>,
        images: Option<Arc<SessionImages>>,
    ) -> Result<Self, SessionError> {
        if let Some(existing) = Self::open_existing(&id, &path, script_owner, images.clone()) {
            return Ok(existing);
        }
        let session = Self {
            id,
            path,
            script_owner,
            images,
        };
        session.update_file(RECORD_FILE, |record: &mut Option<SessionRecord>| {
            record.get_or_insert_with(|| SessionRecord::new(session.id.clone()));
        })?;
        Ok(session)
    }

    /// Opens a session that has a record already.
    pub(super) fn open_existing(
        id: &SessionId,
        path: &Path,
        script_owner: Option<Owner>,
        images: Option<Arc<SessionImages>>,
    ) -> Option<Self> {
        path.join(RECORD_FILE).exists().then(|| Self {
            id: id.clone(),
            path: path.to_owned(),
            script_owner,
            images,
        })
    }

    /// The id of the session.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The record of the session, with its uses up to now.
    pub fn record(&self) -> Result<SessionRecord, SessionError> {
        let record: Option<SessionRecord> = self.read_file(RECORD_FILE)?;
        let mut record = record.ok_or_else(|| SessionError::Unknown(self.id.clone()))?;
        usage::add_uses(&mut record, &self.path).map_err(SessionError::io("read the uses of", &self.path))?;
        Ok(record)
    }

    /// Records a run.
    pub fn record_run(&self) -> Result<(), SessionError> {
        usage::record_run(&self.path).map_err(SessionError::io("record a run in", &self.path))
    }

    /// Records a use without a run.
    pub fn record_use(&self) -> Result<(), SessionError> {
        usage::record_use(&self.path).map_err(SessionError::io("record a use in", &self.path))
    }

    /// The workspace, created on first use and owned by the user that scripts run as. The caller holds the run lock.
    pub fn workspace(&self, new: NewWorkspace<'_>) -> Result<Workspace, SessionError> {
        if let Some(existing) = self.existing_workspace()? {
            return Ok(existing);
        }
        let image = self.path.join(IMAGE_FILE);
        if let (NewWorkspace::Limited(limits), Some(images)) = (new, &self.images)
            && images.create(&image, limits)
        {
            return images.open(&image).map_err(SessionError::io("mount", &image));
        }
        let root = self.create_workspace(&self.path.join(WORKSPACE))?;
        Ok(Workspace::new(root.into(), self.script_owner, Backing::Disk))
    }

    /// The bytes that the workspace uses on the disk; none if no run has needed one yet. At most `max_files` are counted.
    pub fn workspace_bytes(&self, max_files: u64) -> Result<u64, SessionError> {
        // Blocks of 512 bytes: the image is sparse.
        if let Ok(image) = fs::metadata(self.path.join(IMAGE_FILE)) {
            return Ok(image.blocks() * 512);
        }
        let workspace = self.existing_workspace()?;
        Ok(workspace.map_or(0, |workspace| workspace.used_bytes(max_files)))
    }

    /// The workspace, unless no run has needed one yet.
    pub fn existing_workspace(&self) -> Result<Option<Workspace>, SessionError> {
        let path = self.path.join(WORKSPACE);
        // Usually it exists with the right permissions, and a check is cheaper than setting them again.
        if let Some(root) = open_existing_workspace(&path) {
            return Ok(Some(Workspace::new(root.into(), self.script_owner, Backing::Disk)));
        }
        let image = self.path.join(IMAGE_FILE);
        if image.exists() {
            let opened = match &self.images {
                Some(images) => images.open(&image),
                None => Err(io::Error::from(io::ErrorKind::PermissionDenied)),
            };
            return opened.map(Some).map_err(SessionError::io("mount", &image));
        }
        if !path.exists() {
            return Ok(None);
        }
        let root = self.create_workspace(&path)?;
        Ok(Some(Workspace::new(root.into(), self.script_owner, Backing::Disk)))
    }

    /// Creates the workspace as a directory with a random name, to which `path` becomes a link: the script can read the
    /// path of its workspace, and the name of the session may be a secret of its client.
    fn create_workspace(&self, path: &Path) -> Result<File, SessionError> {
        if !path.exists() {
            let name = uuid::Uuid::new_v4().simple().to_string();
            let directories = self.path.with_file_name(DIRECTORIES);
            let directory = directories.join(&name);
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(0o700);
            builder
                .create(&directories)
                .map_err(SessionError::io("create", &directories))?;
            DirBuilder::new()
                .mode(WORKSPACE_MODE)
                .create(&directory)
                .map_err(SessionError::io("create", &directory))?;
            if let Some(owner) = self.script_owner {
                std::os::unix::fs::lchown(&directory, Some(owner.uid), Some(owner.gid))
                    .map_err(SessionError::io("change the owner of", &directory))?;
            }
            std::os::unix::fs::symlink(Path::new("..").join(DIRECTORIES).join(&name), path)
                .map_err(SessionError::io("create", path))?;
        }
        // An earlier run may have removed the permissions that the next run needs.
        fs::set_permissions(path, fs::Permissions::from_mode(WORKSPACE_MODE))
            .map_err(SessionError::io("set the permissions of", path))?;
        File::open(path).map_err(SessionError::io("open", path))
    }

    /// Waits until no other run uses the session, then locks it. Fails after `timeout`, or when `is_cancelled` returns true.
    pub fn lock_run(&self, timeout: Duration, is_cancelled: impl Fn() -> bool) -> Result<RunLock, SessionError> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(lock) = self.try_lock_run()? {
                return Ok(lock);
            }
            if Instant::now() >= deadline || is_cancelled() {
                return Err(SessionError::Busy(self.id.clone()));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Takes the lock, unless another run holds it.
    pub fn try_lock_run(&self) -> Result<Option<RunLock>, SessionError> {
        let path = self.path.join("run.lock");
        let file = open_lock_file(&path).map_err(|error| error.or_unknown(&self.id))?;
        match file.try_lock() {
            // The session may have been removed since the file was opened.
            Ok(()) if is_same_file(&file, &path) => Ok(Some(RunLock(file))),
            Ok(()) => Err(SessionError::Unknown(self.id.clone())),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(SessionError::io("lock", &path)(error)),
        }
    }

    /// Reads a value from a file of the session.
    pub fn read_file<T: DeserializeOwned>(&self, file: &str) -> Result<Option<T>, SessionError> {
        let path = self.path.join(file);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(SessionError::io("read", &path)(error)),
        };
        serde_json::from_slice(&text).map_err(|source| SessionError::Damaged { path, source })
    }

    /// Changes a value in a file of the session. The file is read and replaced under a lock, so concurrent changes all take
    /// effect, and readers see either the old or the new value.
    pub fn update_file<T, R>(&self, file: &str, change: impl FnOnce(&mut Option<T>) -> R) -> Result<R, SessionError>
    where
        T: DeserializeOwned + Serialize,
    {
        self.try_update_file(file, |mut value| {
            let result = change(&mut value);
            Ok((result, value))
        })
    }

    /// Like [`update_file`](Self::update_file), but `change` may fail or return no new value; the file then stays as it is.
    pub fn try_update_file<T, R, E>(
        &self,
        file: &str,
        change: impl FnOnce(Option<T>) -> Result<(R, Option<T>), E>,
    ) -> Result<R, E>
    where
        T: DeserializeOwned + Serialize,
        E: From<SessionError>,
    {
        let _lock = self.lock_changes(file)?;
        let (result, changed) = change(self.read_file(file)?)?;
        if let Some(changed) = changed {
            self.replace_file(file, &changed)?;
        }
        Ok(result)
    }

    /// Like [`try_update_file`](Self::try_update_file), but the file is read only if another process changed it.
    pub(crate) fn try_update_cached_file<T, R, E>(
        &self,
        file: &str,
        cache: &FileCache<T>,
        change: impl FnOnce(Option<T>) -> Result<(R, Option<T>), E>,
    ) -> Result<R, E>
    where
        T: Clone + DeserializeOwned + Serialize,
        E: From<SessionError>,
    {
        let _lock = self.lock_changes(file)?;
        let (result, changed) = change(cache.read(&self.path.join(file))?)?;
        if let Some(changed) = changed {
            let written = self.replace_file(file, &changed)?;
            cache.store(written, changed);
        }
        Ok(result)
    }

    /// Keeps others from changing the file until the lock is dropped.
    fn lock_changes(&self, file: &str) -> Result<File, SessionError> {
        let path = self.path.join(format!("{file}.lock"));
        let lock = open_lock_file(&path).map_err(|error| error.or_unknown(&self.id))?;
        lock.lock().map_err(SessionError::io("lock", &path))?;
        Ok(lock)
    }

    /// Removes a file of the session, if it exists.
    pub(super) fn remove_file(&self, file: &str) -> Result<(), SessionError> {
        let path = self.path.join(file);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(SessionError::io("remove", &path)(error)),
            _ => Ok(()),
        }
    }

    /// Replaces a file of the session. Readers see either the old or the new value.
    pub(super) fn replace_file<T: Serialize>(&self, file: &str, value: &T) -> Result<File, SessionError> {
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

/// Opens a workspace that exists with the expected permissions.
fn open_existing_workspace(workspace: &Path) -> Option<File> {
    let root = File::open(workspace).ok()?;
    let mode = root.metadata().ok()?.permissions().mode();
    (mode & 0o7777 == WORKSPACE_MODE).then_some(root)
}

fn is_same_file(file: &File, path: &Path) -> bool {
    let (Ok(opened), Ok(found)) = (file.metadata(), fs::metadata(path)) else {
        return false;
    };
    (opened.dev(), opened.ino()) == (found.dev(), found.ino())
}

fn open_lock_file(path: &Path) -> Result<File, SessionError> {
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
    fn concurrent_changes_all_take_effect() {
        let directory = tempfile::tempdir().unwrap();
        let store = SessionStore::new(directory.path(), None);
        std::thread::scope(|scope| {
            for number in 0..8_u32 {
                let store = &store;
                scope.spawn(move || {
                    let session = store.open_or_create(&id("s1")).unwrap();
                    session
                        .update_file("numbers.json", |numbers: &mut Option<Vec<u32>>| {
                            numbers.get_or_insert_default().push(number);
                        })
                        .unwrap();
                });
            }
        });
        let mut numbers: Vec<u32> = store
            .open(&id("s1"))
            .unwrap()
            .read_file("numbers.json")
            .unwrap()
            .unwrap();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..8).collect::<Vec<_>>());
    }

    #[test]
    fn a_running_session_is_busy_and_a_removed_one_starts_empty() {
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
        session.workspace(NewWorkspace::Directory).unwrap();
        fs::write(directory.path().join("s1/workspace/old"), "").unwrap();
        store.remove(&id("s1")).unwrap();
        assert!(matches!(store.open(&id("s1")), Err(SessionError::Unknown(_))));
        let session = store.open_or_create(&id("s1")).unwrap();
        session.workspace(NewWorkspace::Directory).unwrap();
        assert!(!directory.path().join("s1/workspace/old").exists());
        let link = fs::read_link(directory.path().join("s1/workspace")).unwrap();
        assert!(!link.to_str().unwrap().contains("s1"), "scripts can read {link:?}");
        let real_path = directory.path().join(DIRECTORIES).join(link.file_name().unwrap());
        assert!(real_path.is_dir());
        store.remove(&id("s1")).unwrap();
        assert!(!real_path.exists());
        assert_eq!(store.count().unwrap(), 0);
    }

    #[test]
    fn a_session_is_created_once() {
        let directory = tempfile::tempdir().unwrap();
        let store = SessionStore::new(directory.path().join("sessions"), None);
        store.create(&id("s1")).unwrap();
        assert!(matches!(store.create(&id("s1")), Err(SessionError::Exists(_))));
        assert_eq!(store.count().unwrap(), 1);
    }

    #[test]
    fn garbage_collection_removes_idle_sessions_and_keeps_busy_ones() {
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
