//! Finds the session that a request belongs to.
//!
//! On standard input and output, the process has one session. Over HTTP, a client of the older protocol revisions has one
//! for the duration of its protocol session. In the stateless revision, the first call returns a handle, which later calls
//! contain. In each revision, a request over HTTP may name a session instead: by its address, a header or an argument.

use std::sync::Arc;

use rmcp::model::{JsonObject, ProtocolVersion, RequestMetaObject};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::output_uri::split_session;
use crate::server_state::ServerState;
use crate::session::ClientSession;
use crate::session_name::SessionName;
use crate::tasks;
use crate::tools::SESSION_ARGUMENT;

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
    /// The name that links need, if later requests do not name the session by themselves.
    pub link_session: Option<String>,
    unannounced: Option<UnannouncedHandle>,
}

impl ResolvedSession {
    fn without_handle(session: Arc<ClientSession>) -> Self {
        Self {
            session,
            handle: None,
            link_session: None,
            unannounced: None,
        }
    }

    /// The handle of the session, if this call has created it.
    pub(crate) fn new_session(&self) -> Option<&str> {
        self.unannounced.as_ref()?.handle.as_deref()
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

    /// The session of a call; the first call creates it. Names of sessions are removed from the arguments.
    pub(crate) async fn find_or_create(
        &self,
        server: &Arc<ServerState>,
        context: &RequestContext<RoleServer>,
        arguments: &mut Option<JsonObject>,
    ) -> Result<ResolvedSession, ErrorData> {
        if let Self::Stdio(session) = self {
            return Ok(ResolvedSession::without_handle(session.clone()));
        }
        let connection = connection_name(context);
        let mut names: Vec<SessionName> = connection.iter().cloned().collect();
        names.extend(handle_of(&context.meta)?.map(SessionName::parse_handle));
        names.extend(take_argument_names(arguments)?);
        names.dedup();
        if names.len() > 1 {
            let message = "the call names different sessions, by its address, header, handle, argument or inputs";
            return Err(ErrorData::invalid_params(message, None));
        }
        if let Some(name) = names.pop() {
            let handle = Some(name.as_str().to_owned());
            return Ok(ResolvedSession {
                session: server.handles.find_or_create(&name, server.create_session()).await?,
                link_session: handle.clone().filter(|_| connection.is_none()),
                handle,
                unannounced: None,
            });
        }
        match self {
            Self::Stdio(session) => Ok(ResolvedSession::without_handle(session.clone())),
            Self::Http(_) if is_stateless(context) => create_with_handle(server).await,
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
        if let (Self::Http(_), Some(name)) = (self, connection_name(context)) {
            // A session begins with its first call.
            return Ok(server.handles.find(name.as_str()).ok());
        }
        match self {
            Self::Stdio(session) => Ok(Some(session.clone())),
            Self::Http(_) if is_stateless(context) => match handle_of(&context.meta)? {
                None => Ok(None),
                Some(handle) => server.handles.find(handle).map(Some),
            },
            Self::Http(client) => Ok(client.session.get().cloned()),
        }
    }

    /// The session that a link names.
    pub(crate) fn find_by_link(&self, server: &ServerState, name: &str) -> Result<Arc<ClientSession>, ErrorData> {
        match self {
            Self::Stdio(session) => Ok(session.clone()),
            Self::Http(_) => server.handles.find(name),
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

async fn create_with_handle(server: &Arc<ServerState>) -> Result<ResolvedSession, ErrorData> {
    server.handles.check_capacity()?;
    let session = server.create_session().await?;
    let handle = server.handles.insert(session.clone());
    Ok(ResolvedSession {
        session,
        handle: Some(handle.clone()),
        link_session: Some(handle.clone()),
        unannounced: Some(UnannouncedHandle {
            server: server.clone(),
            handle: Some(handle),
        }),
    })
}

/// Whether the request belongs to the revision of the protocol that has no sessions.
pub(crate) fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// The name in the address or the header of a request, which all requests of the client have.
fn connection_name(context: &RequestContext<RoleServer>) -> Option<SessionName> {
    let request = context.extensions.get::<axum::http::request::Parts>()?;
    request.extensions.get::<SessionName>().cloned()
}

/// Whether a model has to name the session of its calls, because the client does not.
pub(crate) fn needs_session_argument(context: &RequestContext<RoleServer>) -> bool {
    is_stateless(context)
        && context.extensions.get::<axum::http::request::Parts>().is_some()
        && connection_name(context).is_none()
}

/// Removes the names of sessions from the arguments of a call: the argument itself, and what the links of earlier results
/// add to inputs.
fn take_argument_names(arguments: &mut Option<JsonObject>) -> Result<Vec<SessionName>, ErrorData> {
    let Some(arguments) = arguments else {
        return Ok(Vec::new());
    };
    let mut names = Vec::new();
    match arguments.remove(SESSION_ARGUMENT) {
        None | Some(Value::Null) => {}
        Some(Value::String(name)) if name.is_empty() => {}
        Some(Value::String(name)) => names.push(SessionName::parse(&name)?),
        Some(_) => {
            let message = format!("the argument `{SESSION_ARGUMENT}` is not a string");
            return Err(ErrorData::invalid_params(message, None));
        }
    }
    for input in arguments
        .get_mut("inputs")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        let Some(from) = input.get("from").and_then(Value::as_str) else {
            continue;
        };
        if let (uri, Some(name)) = split_session(from) {
            names.push(SessionName::parse(name)?);
            let uri = uri.to_owned();
            input["from"] = Value::String(uri);
        }
    }
    Ok(names)
}

fn handle_of(meta: &RequestMetaObject) -> Result<Option<&str>, ErrorData> {
    match meta.0.0.get(HANDLE_KEY) {
        None => Ok(None),
        Some(Value::String(handle)) => Ok(Some(handle)),
        Some(_) => Err(ErrorData::invalid_params(
            format!("_meta[{HANDLE_KEY:?}] is not a string"),
            None,
        )),
    }
}
