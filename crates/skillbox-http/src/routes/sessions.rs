//! Sessions: made, listed, looked at, removed.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use skillbox_model::{ErrorCode, SessionId};
use skillbox_runtime::session::SessionRecord;

use crate::app::{App, in_background};
use crate::error::ApiError;
use crate::extract::{PathText, read_json, typed};
use crate::limits::Limits;
use crate::tenant::Tenant;

/// How long runs that were cancelled with their session may take to be dead.
const LAST_RUNS: Duration = Duration::from_secs(10);

/// How a session is to be made.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewSession {
    /// Its name: 1 to 128 letters, digits, `.`, `_` and `-`, the first a letter or digit; made up by the server where
    /// none is given.
    #[schemars(with = "Option<String>", regex(pattern = r"^[a-zA-Z0-9][a-zA-Z0-9._-]{0,127}$"))]
    id: Option<SessionId>,
}

/// One session.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Session")]
pub(crate) struct SessionView {
    id: SessionId,
    /// When it was made, in milliseconds since 1970.
    created_unix_ms: u64,
    /// When it was last used.
    last_used_unix_ms: u64,
    /// How many runs it has had.
    runs: u64,
}

/// Sessions.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SessionList {
    sessions: Vec<SessionView>,
}

/// One session with what its agents have loaded.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SessionState {
    #[serde(flatten)]
    session: SessionView,
    loaded: Vec<Loaded>,
    /// Skills that are disabled in this session.
    disabled: Vec<String>,
}

/// A loaded skill.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LoadedSkill")]
pub(crate) struct Loaded {
    agent: String,
    skill: String,
    /// How long it stays: `session`, `turn` or `once`.
    mode: String,
    /// Paths of documents, or `*` for all of them.
    docs: Value,
}

impl From<SessionRecord> for SessionView {
    fn from(record: SessionRecord) -> Self {
        Self {
            id: record.id,
            created_unix_ms: record.created_unix_ms,
            last_used_unix_ms: record.last_used_unix_ms,
            runs: record.runs,
        }
    }
}

/// The name of a session; a text that can be none is the name of no session.
pub(super) fn named(text: &str) -> Result<SessionId, ApiError> {
    SessionId::parse(text)
        .map_err(|_| ApiError::new(ErrorCode::SessionUnknown, format!("no session {text:?} is stored")))
}

/// The name of a session that this tenant has.
pub(super) fn known(tenant: &Tenant, text: &str) -> Result<SessionId, ApiError> {
    let id = named(text)?;
    tenant.runtime.sessions().open(&id)?;
    Ok(id)
}

pub(crate) async fn list(Extension(tenant): Extension<Arc<Tenant>>) -> Result<Json<SessionList>, ApiError> {
    in_background(move || {
        let records = tenant.runtime.sessions().list()?;
        Ok(Json(SessionList {
            sessions: records.into_iter().map(Into::into).collect(),
        }))
    })
    .await
}

pub(crate) async fn create(
    State(app): State<Arc<App>>,
    Extension(tenant): Extension<Arc<Tenant>>,
    request: Request,
) -> Result<(StatusCode, Json<SessionView>), ApiError> {
    let asked: NewSession = match read_json(request, app.limits.body).await? {
        Some(value) => typed(value)?,
        None => NewSession::default(),
    };
    in_background(move || {
        let sessions = tenant.runtime.sessions();
        if sessions.count()? >= Limits::SESSIONS {
            let message = format!("{} sessions are stored already", Limits::SESSIONS);
            return Err(ApiError::new(ErrorCode::LimitExceeded, message).hint("remove some"));
        }
        let made_up = || {
            let name = uuid::Uuid::now_v7().simple().to_string();
            SessionId::parse(name).unwrap_or_else(|error| unreachable!("a UUID is an identifier: {error}"))
        };
        let session = sessions.create(&asked.id.unwrap_or_else(made_up))?;
        Ok((StatusCode::CREATED, Json(session.record()?.into())))
    })
    .await
}

pub(crate) async fn show(
    Extension(tenant): Extension<Arc<Tenant>>,
    path: PathText,
) -> Result<Json<SessionState>, ApiError> {
    in_background(move || {
        let id = named(path.first())?;
        let record = tenant.runtime.sessions().open(&id)?.record()?;
        let state = tenant.runtime.session_state(&id)?;
        let mut all = Vec::new();
        for agent in state.agents() {
            all.extend(state.loaded(agent).map(|loaded| Loaded {
                agent: agent.as_str().to_owned(),
                skill: loaded.skill.to_string(),
                mode: loaded.mode.as_str().to_owned(),
                docs: json!(state.docs(agent, &loaded.skill).cloned().unwrap_or_default()),
            }));
        }
        Ok(Json(SessionState {
            session: record.into(),
            loaded: all,
            disabled: state.disabled().iter().map(ToString::to_string).collect(),
        }))
    })
    .await
}

pub(crate) async fn remove(Extension(tenant): Extension<Arc<Tenant>>, path: PathText) -> Result<StatusCode, ApiError> {
    let id = named(path.first())?;
    let runs = tenant.runs.all().into_iter().filter(|run| run.session() == Some(&id));
    for run in runs {
        run.cancel();
        // One that does not end in time holds the session, which is then busy.
        let _in_time = tokio::time::timeout(LAST_RUNS, run.over()).await;
    }
    in_background(move || match tenant.runtime.remove_session(&id) {
        Ok(_) => Ok(StatusCode::NO_CONTENT),
        Err(error) => Err(error.into()),
    })
    .await
}
