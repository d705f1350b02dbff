//! All sessions below one directory: opens, lists and removes them.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use skillbox_executor::workspace::{Owner, remove_tree};
use skillbox_model::SessionId;

use super::image::SessionImages;
use super::open::{DIRECTORIES, IMAGE_FILE, WORKSPACE};
use super::{OpenSession, SessionError, SessionRecord};

/// The sessions of one state directory.
///
/// ```text
/// sessions/<id>/session.json     the record as of the session's creation
/// sessions/<id>/uses             one byte per run; its modification time is the last use
/// sessions/<id>/state.json       loaded, selected and disabled skills
/// sessions/<id>/pins.json        pinned artifact versions
/// sessions/<id>/forks.json       the forks of the session
/// sessions/<id>/fork.json        the origin of the session, if it is a fork
/// sessions/<id>/workspace.img    the workspace, as a file system of its own with hard limits
/// sessions/<id>/workspace        or a link to its directory, owned by the user that scripts run as
/// sessions/.workspaces/<random>/ that directory; the script can read this path, and not the id of the session
/// sessions/<id>/owner.lock       held by the owning server process, if there is one
/// sessions/<id>/*.lock           held during a run, or during the change of a file
/// ```
#[derive(Clone, Debug)]
pub struct SessionStore {
    root: PathBuf,
    script_owner: Option<Owner>,
    images: Option<Arc<SessionImages>>,
}

impl SessionStore {
    /// Sessions below `root`. `script_owner` is the user that scripts run as, if it is not the user of this process.
    pub fn new(root: impl Into<PathBuf>, script_owner: Option<Owner>) -> Self {
        Self {
            root: root.into(),
            script_owner,
            // Only root can mount, and root's scripts have another user.
            images: script_owner.map(|owner| Arc::new(SessionImages::new(owner))),
        }
    }

    /// Opens a session, or creates it if it does not exist.
    pub fn open_or_create(&self, id: &SessionId) -> Result<OpenSession, SessionError> {
        let path = self.path(id);
        if let Some(session) = OpenSession::open_existing(id, &path, self.script_owner, self.images.clone()) {
            return Ok(session);
        }
        // Only this user needs access: the sandbox opens its workspace through a descriptor.
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(&path).map_err(SessionError::io("create", &path))?;
        OpenSession::open_or_create(id.clone(), path, self.script_owner, self.images.clone())
            .map_err(|error| error.or_unknown(id))
    }

    /// Creates a session that must not exist yet.
    pub fn create(&self, id: &SessionId) -> Result<OpenSession, SessionError> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder
            .create(&self.root)
            .map_err(SessionError::io("create", &self.root))?;
        let path = self.path(id);
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => OpenSession::open_or_create(id.clone(), path, self.script_owner, self.images.clone())
                .map_err(|error| error.or_unknown(id)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(SessionError::Exists(id.clone())),
            Err(error) => Err(SessionError::io("create", &path)(error)),
        }
    }

    /// Opens a session that exists.
    pub fn open(&self, id: &SessionId) -> Result<OpenSession, SessionError> {
        let path = self.path(id);
        if !path.is_dir() {
            return Err(SessionError::Unknown(id.clone()));
        }
        OpenSession::open_or_create(id.clone(), path, self.script_owner, self.images.clone())
            .map_err(|error| error.or_unknown(id))
    }

    /// Every session, sorted by id.
    pub fn list(&self) -> Result<Vec<SessionRecord>, SessionError> {
        let mut records = Vec::new();
        for id in self.ids()? {
            match self.open(&id) {
                Ok(session) => records.push(session.record()?),
                // The session was removed after it was listed.
                Err(SessionError::Unknown(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(records)
    }

    /// The number of sessions.
    pub fn count(&self) -> Result<usize, SessionError> {
        Ok(self.ids()?.len())
    }

    /// Removes a session with all its files. Fails with [`SessionError::Busy`] while a run is in progress.
    pub fn remove(&self, id: &SessionId) -> Result<(), SessionError> {
        let session = self.open(id)?;
        let lock = session.try_lock_run()?.ok_or_else(|| SessionError::Busy(id.clone()))?;
        // The directory is renamed first, so that a new session with the same id starts empty even if the removal fails.
        let path = self.path(id);
        // The name is unique: the same id can be created and removed again while this directory is still being removed.
        let removed = self
            .root
            .join(format!("{REMOVED_PREFIX}{}", uuid::Uuid::new_v4().simple()));
        fs::rename(&path, &removed).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => SessionError::Unknown(id.clone()),
            _ => SessionError::io("rename", &path)(error),
        })?;
        drop(lock);
        if let Some(images) = &self.images {
            images.release(&path.join(IMAGE_FILE));
        }
        self.remove_session_directory(&removed)
    }

    /// Removes the directory of a session with the directory of its workspace.
    fn remove_session_directory(&self, path: &Path) -> Result<(), SessionError> {
        // The link is ours: only this user can write to the directory of a session.
        if let Ok(link) = fs::read_link(path.join(WORKSPACE))
            && let Some(name) = link.file_name()
        {
            self.remove_directory(&self.root.join(DIRECTORIES).join(name))?;
        }
        self.remove_directory(path)
    }

    /// Removes the directories of workspaces that no session refers to.
    fn remove_unused_workspaces(&self) -> Result<(), SessionError> {
        let directories = self.root.join(DIRECTORIES);
        let mut used = BTreeSet::new();
        // The list comes first: a session that is created meanwhile has its directory before its link.
        let found = fs::read_dir(&directories).into_iter().flatten().flatten();
        let found: Vec<_> = found.map(|entry| entry.file_name()).collect();
        for entry in self.entries()? {
            if let Ok(link) = fs::read_link(self.root.join(entry).join(WORKSPACE)) {
                used.extend(link.file_name().map(std::ffi::OsStr::to_owned));
            }
        }
        for name in found {
            let path = directories.join(&name);
            let age = fs::metadata(&path)
                .and_then(|found| found.modified())
                .map(|time| time.elapsed());
            let is_new = age.is_ok_and(|age| age.unwrap_or_default() < CREATION_TIME);
            if !used.contains(&name) && !is_new {
                self.remove_directory(&path)?;
            }
        }
        Ok(())
    }

    /// Removes sessions that were idle for longer than `ttl`, and completes interrupted removals.
    pub fn collect_garbage(&self, ttl: Duration) -> Result<Vec<SessionId>, SessionError> {
        for entry in self.entries()? {
            if entry.as_encoded_bytes().starts_with(REMOVED_PREFIX.as_bytes()) {
                self.remove_session_directory(&self.root.join(entry))?;
            }
        }
        self.remove_unused_workspaces()?;
        let mut removed = Vec::new();
        for record in self.list()? {
            if record.idle_time() < ttl {
                continue;
            }
            match self.remove(&record.id) {
                Ok(()) => removed.push(record.id),
                Err(SessionError::Busy(_) | SessionError::Unknown(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(removed)
    }

    pub(super) fn path(&self, id: &SessionId) -> PathBuf {
        self.root.join(id.as_str())
    }

    pub(super) fn ids(&self) -> Result<Vec<SessionId>, SessionError> {
        let mut ids: Vec<SessionId> = self
            .entries()?
            .into_iter()
            .filter_map(|name| SessionId::parse(name.to_str()?).ok())
            .collect();
        ids.sort_unstable();
        Ok(ids)
    }

    fn entries(&self) -> Result<Vec<std::ffi::OsString>, SessionError> {
        match fs::read_dir(&self.root) {
            Ok(entries) => Ok(entries.flatten().map(|entry| entry.file_name()).collect()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(SessionError::io("list", &self.root)(error)),
        }
    }

    fn remove_directory(&self, path: &Path) -> Result<(), SessionError> {
        let failed = |error: io::Error| SessionError::io("remove", path)(error);
        let parent = File::open(path.parent().unwrap_or(&self.root)).map_err(failed)?;
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        let remove = || remove_tree(parent.as_fd(), name).map_err(io::Error::from);
        // A system call that resolved the path before it was renamed can still create a file in the directory.
        let mut result = remove();
        for _ in 0..REMOVAL_RETRIES {
            match &result {
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => result = remove(),
                _ => break,
            }
        }
        result.map_err(failed)
    }
}

/// Prefix of directories to be removed. No session id starts with a dot.
const REMOVED_PREFIX: &str = ".removed-";

/// How often the removal of a directory is repeated when it is not empty in the end. Nothing new can find the directory, so
/// one more pass is nearly always enough.
const REMOVAL_RETRIES: usize = 20;

/// The longest time between the creation of the directory of a workspace and that of the link to it.
const CREATION_TIME: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_can_be_removed_while_an_earlier_one_of_its_id_is_being_removed() {
        let directory = tempfile::tempdir().unwrap();
        let store = SessionStore::new(directory.path(), None);
        let id = SessionId::parse("s1").unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        // Many files make the removal long enough for the next one to begin.
                        if store.create(&id).is_ok() {
                            for number in 0..50 {
                                let _ = fs::write(store.path(&id).join(format!("file-{number}")), "content");
                            }
                        }
                        match store.remove(&id) {
                            Ok(()) | Err(SessionError::Unknown(_) | SessionError::Busy(_)) => {}
                            Err(error) => panic!("{error:?}"),
                        }
                    }
                });
            }
        });
        store.collect_garbage(Duration::ZERO).unwrap();
        assert_eq!(store.count().unwrap(), 0);
    }
}
