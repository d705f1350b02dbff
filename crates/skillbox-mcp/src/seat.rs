//! Where a request's session is found.
//!
//! On standard input and output the process is the session. Over HTTP a client of the older revisions has one for as
//! long as its connection's session lives; in the stateless revision the first call returns a handle, and later calls
//! carry it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rmcp::model::{ProtocolVersion, RequestMetaObject};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use tokio::sync::OnceCell;

use crate::host::{Host, locked};
use crate::session::ClientSession;
use crate::tasks;

/// The key of `_meta` that carries a session's handle, in results and in requests.
pub(crate) const HANDLE: &str = "skillbox/session";
/// A handle that nobody uses for so long is forgotten, with its session.
const HANDLE_TTL: Duration = Duration::from_secs(30 * 60);
/// So many sessions may have handles at once.
const MAX_HANDLES: usize = 1000;

/// Where one client sits.
#[derive(Clone, Debug)]
pub(crate) enum Seat {
    /// The client of the process.
    Process(Arc<ClientSession>),
    /// A client of the HTTP server.
    Guest(Arc<Guest>),
}

/// A client that came over HTTP.
#[derive(Debug)]
pub(crate) struct Guest {
    own: OnceCell<Arc<ClientSession>>,
    runtime: tokio::runtime::Handle,
}

/// What a call takes part in, and how the client finds it again.
pub(crate) struct Seated {
    pub session: Arc<ClientSession>,
    pub handle: Option<String>,
    untold: Option<Untold>,
}

impl Seated {
    /// The client is told the handle, if there is one.
    pub(crate) fn told(self) {
        if let Some(mut untold) = self.untold {
            untold.handle = None;
        }
    }
}

/// A new session, until the client is told its handle. One that nobody can come back to ends.
struct Untold {
    host: Arc<Host>,
    handle: Option<String>,
}

impl Drop for Untold {
    fn drop(&mut self) {
        let session = self.handle.take().and_then(|handle| self.host.handles.forget(&handle));
        if let (Some(session), Ok(runtime)) = (session, tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move { session.end().await });
        }
    }
}

impl Seat {
    /// A seat for a client of the HTTP server, without a session until it needs one.
    pub(crate) fn guest() -> Self {
        Self::Guest(Arc::new(Guest {
            own: OnceCell::new(),
            runtime: tokio::runtime::Handle::current(),
        }))
    }

    /// The session of a call, made where there is none yet.
    pub(crate) async fn take(
        &self,
        host: &Arc<Host>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Seated, ErrorData> {
        let session = match self {
            Self::Process(session) => session.clone(),
            Self::Guest(_) if is_stateless(context) => return host.handles.take(host, &context.meta).await,
            Self::Guest(guest) => guest.own.get_or_try_init(|| ClientSession::open(host)).await?.clone(),
        };
        Ok(Seated {
            session,
            handle: None,
            untold: None,
        })
    }

    /// The session that a task belongs to; a task of another client is as good as none. A client without a connection
    /// of its own need not carry the session's handle: the name of a task cannot be guessed either.
    pub(crate) fn of_task(
        &self,
        host: &Host,
        context: &RequestContext<RoleServer>,
        task: &str,
    ) -> Result<Arc<ClientSession>, ErrorData> {
        let session = match self.look(host, context)? {
            None if is_stateless(context) => host.handles.owner_of(task),
            session => session.filter(|session| session.tasks.has(task)),
        };
        session.ok_or_else(|| tasks::unknown(task))
    }

    /// The session that is there already, for requests that only look.
    pub(crate) fn look(
        &self,
        host: &Host,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<Arc<ClientSession>>, ErrorData> {
        match self {
            Self::Process(session) => Ok(Some(session.clone())),
            Self::Guest(_) if is_stateless(context) => match handle_of(&context.meta)? {
                None => Ok(None),
                Some(handle) => host.handles.find(handle).map(Some),
            },
            Self::Guest(guest) => Ok(guest.own.get().cloned()),
        }
    }
}

impl Drop for Guest {
    /// The connection's session is over, however that came.
    fn drop(&mut self) {
        if let Some(session) = self.own.take() {
            self.runtime.spawn(async move { session.end().await });
        }
    }
}

fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

fn handle_of(meta: &RequestMetaObject) -> Result<Option<&str>, ErrorData> {
    match meta.0.0.get(HANDLE) {
        None => Ok(None),
        Some(serde_json::Value::String(handle)) => Ok(Some(handle)),
        Some(_) => Err(ErrorData::invalid_params(
            format!("_meta[{HANDLE:?}] is not a text"),
            None,
        )),
    }
}

/// The sessions of clients without a connection of their own.
#[derive(Debug, Default)]
pub(crate) struct Handles(Mutex<HashMap<String, Held>>);

#[derive(Debug)]
struct Held {
    session: Arc<ClientSession>,
    last_used: Instant,
}

impl Handles {
    async fn take(&self, host: &Arc<Host>, meta: &RequestMetaObject) -> Result<Seated, ErrorData> {
        if let Some(handle) = handle_of(meta)? {
            let session = self.find(handle)?;
            return Ok(Seated {
                session,
                handle: Some(handle.to_owned()),
                untold: None,
            });
        }
        if locked(&self.0).len() >= MAX_HANDLES {
            let message = format!("{MAX_HANDLES} sessions are open already; try again later");
            return Err(ErrorData::internal_error(
                message,
                Some(serde_json::json!({"error": {"code": "busy"}})),
            ));
        }
        let session = ClientSession::open(host).await?;
        // The name of a session cannot be guessed, and nobody else is told.
        let handle = session.id().to_string();
        let held = Held {
            session: session.clone(),
            last_used: Instant::now(),
        };
        locked(&self.0).insert(handle.clone(), held);
        let untold = Untold {
            host: host.clone(),
            handle: Some(handle.clone()),
        };
        Ok(Seated {
            session,
            handle: Some(handle),
            untold: Some(untold),
        })
    }

    fn forget(&self, handle: &str) -> Option<Arc<ClientSession>> {
        locked(&self.0).remove(handle).map(|held| held.session)
    }

    fn owner_of(&self, task: &str) -> Option<Arc<ClientSession>> {
        let mut handles = locked(&self.0);
        let owner = handles.values_mut().find(|held| held.session.tasks.has(task))?;
        owner.last_used = Instant::now();
        Some(owner.session.clone())
    }

    fn find(&self, handle: &str) -> Result<Arc<ClientSession>, ErrorData> {
        let mut handles = locked(&self.0);
        let Some(held) = handles.get_mut(handle) else {
            let message = "the session of this handle is not there, or no longer: call again without a handle";
            return Err(ErrorData::invalid_params(message, None));
        };
        held.last_used = Instant::now();
        Ok(held.session.clone())
    }

    /// Ends the sessions that nobody uses any more; all of them when the server ends.
    pub(crate) async fn sweep(&self, which: Which) {
        let mut over = Vec::new();
        locked(&self.0).retain(|_, held| {
            let is_idle = held.last_used.elapsed() > HANDLE_TTL && !held.session.is_busy();
            let stays = which == Which::Idle && !is_idle;
            if !stays {
                over.push(held.session.clone());
            }
            stays
        });
        for session in over {
            session.end().await;
        }
    }
}

/// Which sessions end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Idle,
    All,
}
