//! Runs: start, list, get and cancel.

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
use crate::app::{App, run_blocking};
use crate::error::ApiError;
use crate::extract::{PathParams, Query, parse_value, read_json};
use crate::limits::Limits;
use crate::run_start::{CancelRunOnDrop, start_run};
use crate::runs::{RunRecord, RunResult, RunState, RunSummary};
use crate::tenant::Tenant;

/// How long a cancelled run may take to end before the request fails with `busy`.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// Options for starting a run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StartQuery {
    /// Seconds to wait for the result; the run is cancelled if the client disconnects in the meantime. Without this
    /// parameter, the response is immediate.
    #[schemars(range(min = 0, max = 3600))]
    wait: Option<f64>,
}

/// Options for getting a run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WaitQuery {
    /// Maximum seconds to wait for the result.
    #[schemars(range(min = 0, max = 3600))]
    wait: Option<f64>,
}

/// The body of a request to start a run: the fields of `skill_run`, and the session whose workspace the run uses.
#[derive(Debug)]
pub(crate) struct StartRun {
    session: Option<SessionId>,
    request: RunRequest,
}

/// A list of runs.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RunList {
    runs: Vec<RunSummary>,
}

impl StartRun {
    /// Removes `session` before parsing the rest, because [`RunRequest`] refuses unknown keys.
    fn parse(mut value: Value) -> Result<Self, ApiError> {
        let session = match value.as_object_mut().and_then(|object| object.remove("session")) {
            None | Some(Value::Null) => None,
            Some(Value::String(name)) => Some(sessions::parse_session_id(&name)?),
            Some(_) => return Err(ApiError::invalid("expected a string").with_field("session")),
        };
        Ok(Self {
            session,
            request: parse_value(value)?,
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
                "description": "Session whose workspace the run uses; without one, the workspace is removed after the run.",
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
    let body = read_json(request, app.limits.max_body_bytes).await?;
    let parsed = StartRun::parse(body.ok_or_else(|| ApiError::invalid("the body is empty; expected JSON"))?)?;
    let wait = query.wait.map(wait_duration).transpose()?;
    if let Some(id) = parsed.session.clone() {
        let tenant = tenant.clone();
        run_blocking(move || sessions::find_session_id(&tenant, id.as_str())).await?;
    }
    let record = start_run(&app, &tenant, parsed.request, parsed.session)?;
    let Some(wait) = wait else {
        return Ok(run_response(StatusCode::ACCEPTED, &record.state()));
    };
    let cancel_on_drop = CancelRunOnDrop::new(record.clone());
    let is_finished = tokio::time::timeout(wait, record.finished()).await.is_ok();
    cancel_on_drop.disarm();
    match record.state() {
        // A client that waited receives the refusal as an error response.
        RunState::Finished(RunResult {
            refusal: Some(error), ..
        }) => Err(ApiError::clone(&error)),
        state if is_finished => Ok(run_response(StatusCode::OK, &state)),
        state => Ok(run_response(StatusCode::ACCEPTED, &state)),
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
    path: PathParams,
) -> Result<Response, ApiError> {
    let record = find_run(&tenant, path.first())?;
    if let Some(wait) = query.wait {
        // A timeout is not an error: the response contains the current state.
        let _timed_out = tokio::time::timeout(wait_duration(wait)?, record.finished()).await;
    }
    Ok(run_response(StatusCode::OK, &record.state()))
}

pub(crate) async fn remove(Extension(tenant): Extension<Arc<Tenant>>, path: PathParams) -> Result<Response, ApiError> {
    let record = find_run(&tenant, path.first())?;
    record.cancel();
    if tokio::time::timeout(CANCEL_TIMEOUT, record.finished()).await.is_err() {
        return Err(ApiError::busy("the run is cancelled, but has not ended yet"));
    }
    tenant.runs.remove(&record.id);
    Ok(run_response(StatusCode::OK, &record.state()))
}

/// Finds a run of this tenant.
pub(super) fn find_run(tenant: &Tenant, id: &str) -> Result<Arc<RunRecord>, ApiError> {
    let found = tenant.runs.get(id);
    found.ok_or_else(|| ApiError::new(ErrorCode::RunUnknown, format!("unknown run {id:?}")))
}

/// Shares the stored JSON with the response body, without a copy.
struct SharedText(Arc<str>);

impl AsRef<[u8]> for SharedText {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

fn run_response(status: StatusCode, state: &RunState) -> Response {
    let body = Bytes::from_owner(SharedText(state.json()));
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
}

fn wait_duration(seconds: f64) -> Result<Duration, ApiError> {
    if (0.0..=Limits::MAX_WAIT_SECONDS).contains(&seconds) {
        return Ok(Duration::from_secs_f64(seconds));
    }
    let message = format!("{seconds} is not between 0 and {} seconds", Limits::MAX_WAIT_SECONDS);
    Err(ApiError::invalid(message).with_field("wait"))
}
