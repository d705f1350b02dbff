//! A session of a single run: a workspace on disk that is gone after the result.

use skillbox_model::{RunId, SessionId};

use super::{OpenSession, RunLock, SessionError, SessionStore};
use crate::RunError;

/// Removed with everything in it when dropped; what an interrupted process leaves goes with the next clean-up.
pub(crate) struct Scratch {
    pub session: OpenSession,
    lock: Option<RunLock>,
    store: SessionStore,
    id: SessionId,
}

impl Scratch {
    pub fn new(store: &SessionStore, run_id: &RunId) -> Result<Self, RunError> {
        let id = SessionId::parse(run_id.as_str())
            .unwrap_or_else(|error| unreachable!("the name of a run is that of a session: {error}"));
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

impl Drop for Scratch {
    fn drop(&mut self) {
        self.lock = None;
        if let Err(error) = self.store.remove(&self.id) {
            tracing::warn!(run = %self.id, "the workspace of the run stays behind: {error}");
        }
    }
}
