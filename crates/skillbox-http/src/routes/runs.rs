//! Runs: started, looked at, waited for, ended.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use bytes::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use skillbox_model::{ErrorCode, RunRequest, SessionId};

use super::sessions;
use crate::app::{App, in_background};
use crate::error::ApiError;
use crate::extract::{PathText, Query, read_json, typed};
use crate::limits::Limits;
use crate::runs::{self, EndsWithCaller, Order, Over, RunRecord, RunState, RunSummary};
use crate::tenant::Tenant;

/// How long a cancelled run may take to be dead before the answer goes out without its end.
const LAST_MOMENT: Duration = Duration::from_secs(10);

/// Whether the answer waits for the result.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StartQuery {
    /// Wait so many seconds for the result; a client that goes away meanwhile takes its run with it. Without it the
    /// answer comes at once.
    #[schemars(range(min = 0, max = 3600))]
    wait: Option<f64>,
}

/// The same for a run that somebody else may wait for, too.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WaitQuery {
    /// Wait so many seconds for the result, at most.
    #[schemars(range(min = 0, max = 3600))]
    wait: Option<f64>,
}

/// The request of `skill_run`, and the session whose workspace it uses.
#[derive(Debug)]
pub(crate) struct StartRun {
    session: Option<SessionId>,
    request: RunRequest,
}

/// Runs.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RunList {
    runs: Vec<RunSummary>,
}

impl StartRun {
    /// The session stands among the keys of the request, which takes no others than its own.
    fn parse(mut value: Value) -> Result<Self, ApiError> {
        let session = match value.as_object_mut().and_then(|object| object.remove("session")) {
            None | Some(Value::Null) => None,
            Some(Value::String(name)) => Some(sessions::named(&name)?),
            Some(_) => return Err(ApiError::invalid("a text is expected").in_field("session")),
        };
        Ok(Self {
            session,
            request: typed(value)?,
        })
    }
}

impl JsonSchema for StartRun {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "StartRun".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = RunRequest::json_schema(generator);
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            let session = json!({
                "type": ["string", "null"],
                "description": "The session whose workspace is used; without one it is gone after the result.",
            });
            properties.insert("session".to_owned(), session);
        }
        schema
    }
}

pub(crate) async fn start(
    State(app): State<Arc<App>>,
    Extension(tenant): Extension<Arc<Tenant>>,
    Query(query): Query<StartQuery>,
    request: Request,
) -> Result<Response, ApiError> {
    let body = read_json(request, app.limits.body).await?;
    let asked = StartRun::parse(body.ok_or_else(|| ApiError::invalid("the body is empty; JSON is expected"))?)?;
    let wait = query.wait.map(seconds).transpose()?;
    if let Some(id) = asked.session.clone() {
        let tenant = tenant.clone();
        in_background(move || sessions::known(&tenant, id.as_str())).await?;
    }
    let order = Order {
        request: asked.request,
        session: asked.session,
    };
    let record = runs::start(&app, &tenant, order)?;
    let Some(wait) = wait else {
        return Ok(told(StatusCode::ACCEPTED, &record.state()));
    };
    let caller = EndsWithCaller::new(record.clone());
    let is_over = tokio::time::timeout(wait, record.over()).await.is_ok();
    caller.let_go();
    match record.state() {
        // Whoever waited is told in the way of every other refusal.
        RunState::Over(Over {
            refusal: Some(error), ..
        }) => Err(ApiError::clone(&error)),
        state if is_over => Ok(told(StatusCode::OK, &state)),
        state => Ok(told(StatusCode::ACCEPTED, &state)),
    }
}

pub(crate) async fn list(Extension(tenant): Extension<Arc<Tenant>>) -> Json<RunList> {
    Json(RunList {
        runs: tenant.runs.all().iter().map(|run| run.summary()).collect(),
    })
}

pub(crate) async fn show(
    Extension(tenant): Extension<Arc<Tenant>>,
    Query(query): Query<WaitQuery>,
    path: PathText,
) -> Result<Response, ApiError> {
    let record = known(&tenant, path.first())?;
    if let Some(wait) = query.wait {
        // However it went: the answer says how far the run is.
        let _in_time = tokio::time::timeout(seconds(wait)?, record.over()).await;
    }
    Ok(told(StatusCode::OK, &record.state()))
}

pub(crate) async fn remove(Extension(tenant): Extension<Arc<Tenant>>, path: PathText) -> Result<Response, ApiError> {
    let record = known(&tenant, path.first())?;
    record.cancel();
    if tokio::time::timeout(LAST_MOMENT, record.over()).await.is_err() {
        return Err(ApiError::busy("the run is cancelled, but not over yet"));
    }
    tenant.runs.remove(&record.id);
    Ok(told(StatusCode::OK, &record.state()))
}

/// A run of this tenant.
pub(super) fn known(tenant: &Tenant, id: &str) -> Result<Arc<RunRecord>, ApiError> {
    let found = tenant.runs.get(id);
    found.ok_or_else(|| ApiError::new(ErrorCode::RunUnknown, format!("no run {id:?} is known")))
}

/// A text that answers share with what is kept.
struct Text(Arc<str>);

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

fn told(status: StatusCode, state: &RunState) -> Response {
    let body = Bytes::from_owner(Text(state.text()));
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
}

fn seconds(given: f64) -> Result<Duration, ApiError> {
    if (0.0..=Limits::LONGEST_WAIT).contains(&given) {
        return Ok(Duration::from_secs_f64(given));
    }
    let message = format!("{given} is not between 0 and {} seconds", Limits::LONGEST_WAIT);
    Err(ApiError::invalid(message).in_field("wait"))
}
