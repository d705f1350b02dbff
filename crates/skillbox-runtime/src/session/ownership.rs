//! Sessions that belong to one server process and end with it.

use std::fs::{self, File};

use skillbox_model::SessionId;

use super::{OpenSession, SessionError, SessionStore};

/// The file that the owner keeps locked.
const OWNER_LOCK: &str = "owner.lock";

/// The lock of the process that owns a session. The kernel releases it when the process ends.
#[derive(Debug)]
pub struct Ownership {
    id: SessionId,
    _lock: File,
}

impl Ownership {
    /// The session that is owned.
    pub fn id(&self) -> &SessionId {
        &self.id
    }
}

impl SessionStore {
    /// Creates a session that belongs to this process.
    pub fn create_owned(&self, id: &SessionId) -> Result<Ownership, SessionError> {
        let session = self.open_or_create(id)?;
        Ok(Ownership {
            id: id.clone(),
            _lock: session.take_ownership()?,
        })
    }

    /// Sessions whose owner has ended.
    pub fn list_orphaned(&self) -> Result<Vec<SessionId>, SessionError> {
        let is_orphaned = |id: &SessionId| match File::open(self.path(id).join(OWNER_LOCK)) {
            // The session never had an owner.
            Err(_) => false,
            Ok(file) => file.try_lock().is_ok(),
        };
        Ok(self.ids()?.into_iter().filter(is_orphaned).collect())
    }
}

impl OpenSession {
    fn take_ownership(&self) -> Result<File, SessionError> {
        let directory = self.path();
        let failed = |action| SessionError::io(action, directory);
        // The file is locked before it gets its final name, so that no process finds it unlocked.
        let temp = tempfile::NamedTempFile::new_in(directory).map_err(failed("create a file in"))?;
        temp.as_file().lock().map_err(failed("lock a file in"))?;
        let (file, path) = temp.into_parts();
        fs::rename(&path, directory.join(OWNER_LOCK)).map_err(failed("rename a file in"))?;
        // The file no longer has its temporary name, so dropping `path` must not try to remove it.
        let _renamed = path.keep();
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_orphaned_when_its_owner_ends() {
        let directory = tempfile::tempdir().unwrap();
        let store = SessionStore::new(directory.path(), None);
        let id = |text: &str| SessionId::parse(text).unwrap();
        store.open_or_create(&id("kept")).unwrap();
        let owned = store.create_owned(&id("owned")).unwrap();
        assert!(store.list_orphaned().unwrap().is_empty());
        drop(owned);
        assert_eq!(store.list_orphaned().unwrap(), [id("owned")]);
    }
}
