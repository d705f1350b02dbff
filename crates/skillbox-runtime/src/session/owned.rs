//! Sessions that belong to one process: a server's, which end with it however it ends.

use std::fs::{self, File};

use skillbox_model::SessionId;

use super::{OpenSession, SessionError, SessionStore};

/// The file whose lock says that the owner lives.
const OWNER: &str = "owner.lock";

/// Held by the process that a session belongs to. The kernel lets go of it when the process is gone.
#[derive(Debug)]
pub struct Ownership {
    id: SessionId,
    _lock: File,
}

impl Ownership {
    /// The session.
    pub fn id(&self) -> &SessionId {
        &self.id
    }
}

impl SessionStore {
    /// Makes a session that belongs to this process.
    pub fn own(&self, id: &SessionId) -> Result<Ownership, SessionError> {
        let session = self.open_or_create(id)?;
        Ok(Ownership {
            id: id.clone(),
            _lock: session.take_ownership()?,
        })
    }

    /// Sessions whose owner is gone.
    pub fn ownerless(&self) -> Result<Vec<SessionId>, SessionError> {
        let is_ownerless = |id: &SessionId| match File::open(self.path(id).join(OWNER)) {
            // It has no owner, and never had.
            Err(_) => false,
            Ok(file) => file.try_lock().is_ok(),
        };
        Ok(self.ids()?.into_iter().filter(is_ownerless).collect())
    }
}

impl OpenSession {
    fn take_ownership(&self) -> Result<File, SessionError> {
        let directory = self.path();
        let failed = |action| SessionError::io(action, directory);
        // Locked before it can be found, so that nobody ever sees the session without its owner.
        let temp = tempfile::NamedTempFile::new_in(directory).map_err(failed("create a file in"))?;
        temp.as_file().lock().map_err(failed("lock a file in"))?;
        let (file, path) = temp.into_parts();
        fs::rename(&path, directory.join(OWNER)).map_err(failed("rename a file in"))?;
        // Renamed: there is nothing left to remove under the old name.
        let _renamed = path.keep();
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_ownerless_once_its_owner_is_gone_and_not_before() {
        let directory = tempfile::tempdir().unwrap();
        let store = SessionStore::new(directory.path(), None);
        let id = |text: &str| SessionId::parse(text).unwrap();
        store.open_or_create(&id("kept")).unwrap();
        let owned = store.own(&id("owned")).unwrap();
        assert!(store.ownerless().unwrap().is_empty());
        drop(owned);
        assert_eq!(store.ownerless().unwrap(), [id("owned")]);
    }
}
