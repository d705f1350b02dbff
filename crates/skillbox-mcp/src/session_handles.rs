//! The sessions of HTTP clients by name: a handle that the server issued, or a name that the client chose.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rmcp::ErrorData;

use crate::lock::lock;
use crate::session::ClientSession;
use crate::session_name::SessionName;

/// A session whose handle is not used for this long ends.
const HANDLE_TTL: Duration = Duration::from_secs(30 * 60);
/// Maximum number of sessions with handles.
const MAX_HANDLES: usize = 1000;

/// Sessions by handle.
#[derive(Debug, Default)]
pub(crate) struct SessionHandles {
    entries: Mutex<HashMap<String, HandleEntry>>,
    /// Held while a named session is created, so that a name has one session.
    creation: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct HandleEntry {
    session: Arc<ClientSession>,
    last_used: Instant,
}

/// Which sessions [`SessionHandles::end_sessions`] ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionsToEnd {
    Idle,
    All,
}

impl SessionHandles {
    /// Refuses a new session if too many have handles.
    pub(crate) fn check_capacity(&self) -> Result<(), ErrorData> {
        if lock(&self.entries).len() < MAX_HANDLES {
            return Ok(());
        }
        let message = format!("{MAX_HANDLES} sessions are open already; try again later");
        let data = serde_json::json!({"error": {"code": "busy"}});
        Err(ErrorData::internal_error(message, Some(data)))
    }

    /// Adds a session and returns its handle: the session's id, which cannot be guessed and which only its client
    /// receives.
    pub(crate) fn insert(&self, session: Arc<ClientSession>) -> String {
        let handle = session.id().to_string();
        let entry = HandleEntry {
            session,
            last_used: Instant::now(),
        };
        lock(&self.entries).insert(handle.clone(), entry);
        handle
    }

    /// Removes a handle and returns its session.
    pub(crate) fn remove(&self, handle: &str) -> Option<Arc<ClientSession>> {
        lock(&self.entries).remove(handle).map(|entry| entry.session)
    }

    /// The session of a name; the first request creates it with `create`. A handle of the server is never created again.
    pub(crate) async fn find_or_create(
        &self,
        name: &SessionName,
        create: impl Future<Output = Result<Arc<ClientSession>, ErrorData>>,
    ) -> Result<Arc<ClientSession>, ErrorData> {
        let _creating = self.creation.lock().await;
        if name.is_issued_by_server() || lock(&self.entries).contains_key(name.as_str()) {
            return self.find(name.as_str());
        }
        self.check_capacity()?;
        let session = create.await?;
        let entry = HandleEntry {
            session: session.clone(),
            last_used: Instant::now(),
        };
        lock(&self.entries).insert(name.as_str().to_owned(), entry);
        Ok(session)
    }

    /// The session of a handle.
    pub(crate) fn find(&self, handle: &str) -> Result<Arc<ClientSession>, ErrorData> {
        let mut handles = lock(&self.entries);
        let Some(entry) = handles.get_mut(handle) else {
            let message = "the session of this handle does not exist or has ended: call again without a handle";
            return Err(ErrorData::invalid_params(message, None));
        };
        entry.last_used = Instant::now();
        Ok(entry.session.clone())
    }

    /// The session of a task.
    pub(crate) fn find_by_task(&self, task: &str) -> Option<Arc<ClientSession>> {
        let mut handles = lock(&self.entries);
        let entry = handles.values_mut().find(|entry| entry.session.tasks.contains(task))?;
        entry.last_used = Instant::now();
        Some(entry.session.clone())
    }

    /// Ends sessions and removes their handles.
    pub(crate) async fn end_sessions(&self, which: SessionsToEnd) {
        let mut ending = Vec::new();
        lock(&self.entries).retain(|_, entry| {
            let is_idle = entry.last_used.elapsed() > HANDLE_TTL && !entry.session.is_busy();
            let is_kept = which == SessionsToEnd::Idle && !is_idle;
            if !is_kept {
                ending.push(entry.session.clone());
            }
            is_kept
        });
        for session in ending {
            session.end().await;
        }
    }
}
