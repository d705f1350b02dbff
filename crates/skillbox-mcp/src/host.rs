//! What all clients of one server share.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use rmcp::ErrorData;
use rmcp::model::ErrorCode;
use skillbox_model::with_causes;
use skillbox_repository::{WatchError, WatchHandle};
use skillbox_runtime::session::SessionError;
use skillbox_runtime::{
    AgentName, AgentOptions, AgentSession, ChangesEnter, CommandHooks, Delivery, Dialect, History, RunError, Runtime,
    Settings, ToolDefinition, ToolError,
};
use tokio::sync::{Semaphore, broadcast};

use crate::changes;
use crate::seat::Handles;
use crate::session::ClientSession;

/// So many calls are worked on at once; more wait for their turn.
const CALLS_AT_ONCE: usize = 64;

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// A session cannot be opened.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// What former servers left cannot be removed.
    #[error("the sessions of servers that are gone cannot be removed")]
    LeftBehind(#[source] RunError),
    /// Changes of the skills would pass unseen.
    #[error("the skills cannot be watched")]
    Watch(#[from] WatchError),
}

/// The runtime behind a server, and how its clients' sessions are made.
#[derive(Debug)]
pub struct Host {
    pub(crate) runtime: Arc<Runtime>,
    options: AgentOptions,
    /// Belongs to nobody and stays empty: what there is to see before anything is loaded.
    lobby: AgentSession,
    pub(crate) handles: Handles,
    open: Mutex<Vec<Weak<ClientSession>>>,
    pub(crate) calls: Arc<Semaphore>,
    pub(crate) changes: broadcast::Sender<()>,
    _watch: Mutex<WatchHandle>,
}

impl Host {
    /// Prepares to serve. What servers that were killed have left behind goes first.
    pub fn new(runtime: Arc<Runtime>, mut options: AgentOptions) -> Result<Arc<Self>, HostError> {
        runtime.remove_ownerless_sessions().map_err(HostError::LeftBehind)?;
        options.session = None;
        // The protocol knows no turns: what the watch has seen is there with the next call.
        options.changes = ChangesEnter::EveryCall;
        // Nobody but the tools' results brings a client the words of a loaded skill.
        if !options.settings.delivery().in_result() {
            options.settings.delivery = Some(Delivery::Result);
        }
        let watch = runtime.repository().watch()?;
        let changes = changes::announce(watch.changes());
        Ok(Arc::new(Self {
            lobby: AgentSession::open(runtime.clone(), options.clone())?,
            runtime,
            options,
            handles: Handles::default(),
            open: Mutex::default(),
            calls: Arc::new(Semaphore::new(CALLS_AT_ONCE)),
            changes,
            _watch: Mutex::new(watch),
        }))
    }

    /// How a client's session is made.
    pub(crate) fn options(&self) -> AgentOptions {
        self.options.clone()
    }

    /// The tools of a client that has loaded nothing.
    pub(crate) fn tools(&self) -> Result<Vec<ToolDefinition>, ToolError> {
        self.lobby.tools(&AgentName::default())
    }

    /// The overview of the skills, for the server's instructions.
    pub(crate) fn overview(&self) -> Option<String> {
        let section = self.lobby.modify_request(&AgentName::default(), History::Whole);
        section.ok().flatten().map(|section| section.text)
    }

    /// A session of our own dialect that is gone after use: nothing is kept, and no hook's command runs.
    pub(crate) fn passing_session(&self) -> Result<AgentSession, SessionError> {
        let options = AgentOptions {
            hooks: CommandHooks::Offer,
            changes: ChangesEnter::EveryCall,
            ..AgentOptions::from(Settings {
                delivery: Some(Delivery::Result),
                ..Settings::new(Dialect::Skillbox)
            })
        };
        AgentSession::open(self.runtime.clone(), options)
    }

    /// Remembers a session that has to end with the server.
    pub(crate) fn note(&self, session: &Arc<ClientSession>) {
        let mut open = locked(&self.open);
        open.retain(|session| session.strong_count() > 0);
        open.push(Arc::downgrade(session));
    }

    /// Ends every session that is still there.
    pub(crate) async fn end_sessions(&self) {
        let open = std::mem::take(&mut *locked(&self.open));
        for session in open.iter().filter_map(Weak::upgrade) {
            session.end().await;
        }
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.options.settings.dialect
    }
}

/// Does work that waits for the disk, away from the threads that serve connections.
pub(crate) async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ErrorData> + Send + 'static,
) -> Result<T, ErrorData> {
    let span = tracing::Span::current();
    tokio::task::spawn_blocking(move || span.in_scope(work))
        .await
        .unwrap_or_else(|error| Err(failed(&error)))
}

/// Our own failure.
pub(crate) fn failed(error: &dyn std::error::Error) -> ErrorData {
    ErrorData::new(ErrorCode::INTERNAL_ERROR, with_causes(error), None)
}

/// The contents of a lock that a panic elsewhere cannot take from us.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
