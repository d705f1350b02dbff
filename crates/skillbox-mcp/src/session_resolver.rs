//! Finds the session that a request belongs to.
//!
//! On standard input and output, the process has one session. Over HTTP, a client of the older protocol revisions has one
//! for the duration of its protocol session. In the stateless revision, the first call returns a handle, which later calls
//! contain.

use std::sync::Arc;

use rmcp::model::{ProtocolVersion, RequestMetaObject};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use tokio::sync::OnceCell;

use crate::server_state::ServerState;
use crate::session::ClientSession;
use crate::tasks;

/// The key of `_meta` that carries a session's handle, in results and in requests.
pub(crate) const HANDLE_KEY: &str = "skillbox/session";

/// Finds the session of a client's requests.
#[derive(Clone, Debug)]
pub(crate) enum SessionResolver {
    /// The client on standard input and output.
    Stdio(Arc<ClientSession>),
    /// A client of the HTTP server.
    Http(Arc<HttpClient>),
}

/// A client of the HTTP server. In the stateless revision, one exists per request and has no session of its own.
#[derive(Debug)]
pub(crate) struct HttpClient {
    session: OnceCell<Arc<ClientSession>>,
    runtime: tokio::runtime::Handle,
}

/// The session of a call, with the handle by which later requests of the client refer to it.
pub(crate) struct ResolvedSession {
    pub session: Arc<ClientSession>,
    pub handle: Option<String>,
    unannounced: Option<UnannouncedHandle>,
}

impl ResolvedSession {
    fn without_handle(session: Arc<ClientSession>) -> Self {
        Self {
            session,
            handle: None,
            unannounced: None,
        }
    }

    /// Records that the answer to the client contains the handle.
    pub(crate) fn mark_announced(self) {
        if let Some(mut unannounced) = self.unannounced {
            unannounced.handle = None;
        }
    }
}

/// The handle of a new session, until the client receives it. If the value is dropped before that, no client can use the
/// session, so the session ends.
struct UnannouncedHandle {
    server: Arc<ServerState>,
    handle: Option<String>,
}

impl Drop for UnannouncedHandle {
    fn drop(&mut self) {
        let session = self
            .handle
            .take()
            .and_then(|handle| self.server.handles.remove(&handle));
        if let (Some(session), Ok(runtime)) = (session, tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move { session.end().await });
        }
    }
}

impl SessionResolver {
    /// For a client of the HTTP server, without a session until its first call.
    pub(crate) fn http() -> Self {
        Self::Http(Arc::new(HttpClient {
            session: OnceCell::new(),
            runtime: tokio::runtime::Handle::current(),
        }))
    }

    /// The session of a call; the first call creates it.
    pub(crate) async fn find_or_create(
        &self,
        server: &Arc<ServerState>,
        context: &RequestContext<RoleServer>,
    ) -> Result<ResolvedSession, ErrorData> {
        match self {
            Self::Stdio(session) => Ok(ResolvedSession::without_handle(session.clone())),
            Self::Http(_) if is_stateless(context) => find_or_create_by_handle(server, &context.meta).await,
            Self::Http(client) => {
                let session = client.session.get_or_try_init(|| server.create_session()).await?;
                Ok(ResolvedSession::without_handle(session.clone()))
            }
        }
    }

    /// The session of a request that only reads, if there is one.
    pub(crate) fn find(
        &self,
        server: &ServerState,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<Arc<ClientSession>>, ErrorData> {
        match self {
            Self::Stdio(session) => Ok(Some(session.clone())),
            Self::Http(_) if is_stateless(context) => match handle_of(&context.meta)? {
                None => Ok(None),
                Some(handle) => server.handles.find(handle).map(Some),
            },
            Self::Http(client) => Ok(client.session.get().cloned()),
        }
    }

    /// The session that a task belongs to. Tasks of other clients are unknown. A request of the stateless revision need
    /// not carry the handle, because the id of a task cannot be guessed either.
    pub(crate) fn find_by_task(
        &self,
        server: &ServerState,
        context: &RequestContext<RoleServer>,
        task: &str,
    ) -> Result<Arc<ClientSession>, ErrorData> {
        let session = match self.find(server, context)? {
            None if is_stateless(context) => server.handles.find_by_task(task),
            session => session.filter(|session| session.tasks.contains(task)),
        };
        session.ok_or_else(|| tasks::unknown_task(task))
    }
}

impl Drop for HttpClient {
    /// The protocol session is over, so the client's session ends.
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            self.runtime.spawn(async move { session.end().await });
        }
    }
}

async fn find_or_create_by_handle(
    server: &Arc<ServerState>,
    meta: &RequestMetaObject,
) -> Result<ResolvedSession, ErrorData> {
    if let Some(handle) = handle_of(meta)? {
        return Ok(ResolvedSession {
            session: server.handles.find(handle)?,
            handle: Some(handle.to_owned()),
            unannounced: None,
        });
    }
    server.handles.check_capacity()?;
    let session = server.create_session().await?;
    let handle = server.handles.insert(session.clone());
    Ok(ResolvedSession {
        session,
        handle: Some(handle.clone()),
        unannounced: Some(UnannouncedHandle {
            server: server.clone(),
            handle: Some(handle),
        }),
    })
}

fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

fn handle_of(meta: &RequestMetaObject) -> Result<Option<&str>, ErrorData> {
    match meta.0.0.get(HANDLE_KEY) {
        None => Ok(None),
        Some(serde_json::Value::String(handle)) => Ok(Some(handle)),
        Some(_) => Err(ErrorData::invalid_params(
            format!("_meta[{HANDLE_KEY:?}] is not a string"),
            None,
        )),
    }
}
