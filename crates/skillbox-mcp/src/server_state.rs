//! The state that all clients of one server share.

use std::sync::{Arc, Mutex, Weak};

use rmcp::ErrorData;
use skillbox_repository::{WatchError, WatchHandle};
use skillbox_runtime::session::SessionError;
use skillbox_runtime::{
    AgentName, AgentOptions, AgentSession, Delivery, Dialect, ForkedSkills, HistoryCompleteness, HookRunner,
    RefreshPolicy, RunError, Runtime, Settings, ToolDefinition, ToolError,
};
use tokio::sync::{Semaphore, broadcast};

use crate::blocking::{internal_error, run_blocking};
use crate::changes;
use crate::lock::lock;
use crate::session::ClientSession;
use crate::session_handles::SessionHandles;

/// Maximum number of calls that run at the same time; further calls wait.
const MAX_CONCURRENT_CALLS: usize = 64;

/// The reason why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A session cannot be opened.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The sessions of earlier servers cannot be removed.
    #[error("the sessions of earlier servers cannot be removed")]
    OrphanedSessions(#[source] RunError),
    /// The skills cannot be watched, so changes would go unnoticed.
    #[error("the skills cannot be watched")]
    Watch(#[from] WatchError),
}

/// The runtime of a server, its sessions and the options of new ones.
#[derive(Debug)]
pub struct ServerState {
    pub(crate) runtime: Arc<Runtime>,
    options: AgentOptions,
    /// Never loads a skill: shows what a new client sees at this moment.
    empty_session: AgentSession,
    pub(crate) handles: SessionHandles,
    open_sessions: Mutex<Vec<Weak<ClientSession>>>,
    pub(crate) call_permits: Arc<Semaphore>,
    pub(crate) changes: broadcast::Sender<()>,
    _watch: Mutex<WatchHandle>,
}

impl ServerState {
    /// Prepares a server. The sessions of servers that were killed are removed first.
    pub fn new(runtime: Arc<Runtime>, mut options: AgentOptions) -> Result<Arc<Self>, StartError> {
        runtime
            .remove_orphaned_sessions()
            .map_err(StartError::OrphanedSessions)?;
        options.session = None;
        // A client cannot address another session than its own.
        options.settings.forked_skills = ForkedSkills::NoSession;
        // A client receives the text of a loaded skill through tool results only.
        options.settings.delivery = Some(Delivery::Result);
        let current = AgentOptions {
            refresh: Some(RefreshPolicy::EveryCall),
            ..options.clone()
        };
        let watch = runtime.repository().watch()?;
        let changes = changes::broadcast_changes(watch.changes());
        Ok(Arc::new(Self {
            empty_session: AgentSession::open(runtime.clone(), current)?,
            runtime,
            options,
            handles: SessionHandles::default(),
            open_sessions: Mutex::default(),
            call_permits: Arc::new(Semaphore::new(MAX_CONCURRENT_CALLS)),
            changes,
            _watch: Mutex::new(watch),
        }))
    }

    /// The tools of a client that has loaded no skill.
    pub(crate) fn tools(&self) -> Result<Vec<ToolDefinition>, ToolError> {
        self.empty_session.tools(&AgentName::default())
    }

    /// The overview of the skills, for the server's instructions.
    pub(crate) fn overview(&self) -> Option<String> {
        let section = self
            .empty_session
            .modify_request(&AgentName::default(), HistoryCompleteness::Complete);
        section.ok().flatten().map(|section| section.text)
    }

    /// A session in the dialect `skillbox` that is not stored and does not run the commands of hooks.
    pub(crate) fn ephemeral_session(&self) -> Result<AgentSession, SessionError> {
        let options = AgentOptions {
            hook_runner: HookRunner::Host,
            refresh: Some(RefreshPolicy::EveryCall),
            ..AgentOptions::from(Settings {
                delivery: Some(Delivery::Result),
                forked_skills: ForkedSkills::SameSession,
                ..Settings::new(Dialect::Skillbox)
            })
        };
        AgentSession::open(self.runtime.clone(), options)
    }

    /// Creates a session for a client. It ends with the server at the latest.
    pub(crate) async fn create_session(&self) -> Result<Arc<ClientSession>, ErrorData> {
        let (runtime, options) = (self.runtime.clone(), self.options.clone());
        let create = move || ClientSession::create(runtime, options).map_err(|error| internal_error(&error));
        let session = Arc::new(run_blocking(create).await?);
        let mut open = lock(&self.open_sessions);
        open.retain(|session| session.strong_count() > 0);
        open.push(Arc::downgrade(&session));
        drop(open);
        Ok(session)
    }

    /// Ends every session that is still open.
    pub(crate) async fn end_sessions(&self) {
        let open = std::mem::take(&mut *lock(&self.open_sessions));
        for session in open.iter().filter_map(Weak::upgrade) {
            session.end().await;
        }
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.options.settings.dialect
    }
}
