//! The session of a single run: a workspace on disk that is removed after the run.

use skillbox_model::{RunId, SessionId};

use super::{OpenSession, RunLock, SessionError, SessionStore};

/// A session that is removed with all its files when dropped. Garbage collection removes those of interrupted processes.
pub(crate) struct ScratchSession {
    pub session: OpenSession,
    lock: Option<RunLock>,
    store: SessionStore,
    id: SessionId,
}

impl ScratchSession {
    /// Creates the session of a run.
    pub fn create(store: &SessionStore, run_id: &RunId) -> Result<Self, SessionError> {
        let id = SessionId::parse(run_id.as_str())
            .unwrap_or_else(|error| unreachable!("run ids and session ids have the same form: {error}"));
        let session = store.open_or_create(&id)?;
        let lock = session.try_lock_run()?.ok_or_else(|| SessionError::Busy(id.clone()))?;
        Ok(Self {
            session,
            lock: Some(lock),
            store: store.clone(),
            id,
        })
    }
}

impl Drop for ScratchSession {
    fn drop(&mut self) {
        // The store refuses to remove a locked session.
        self.lock = None;
        if let Err(error) = self.store.remove(&self.id) {
            tracing::warn!(run = %self.id, "the workspace of the run cannot be removed: {error}");
        }
    }
}
