//! Runs: start, list, get and cancel.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use bytes::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use skillbox_model::{ErrorCode, RunId, RunRequest, SessionId};
use skillbox_runtime::{HistoryError, RunFilter, RunSummary, TenantFilter};

use super::sessions;
use crate::app::{App, run_blocking};
use crate::content::{FileResponse, send_file};
use crate::error::ApiError;
use crate::extract::{JsonBody, PathParams, Query, read_json};
use crate::limits::Limits;
use crate::run_start::{CancelRunOnDrop, start_run};
use crate::runs::{KnownRun, RequestDigest, RunRecord, RunResult, RunState, past_run_json};
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
    session: Option<String>,
    request: RunRequest,
}

/// Options for listing runs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListQuery {
    /// Only runs of this skill.
    skill: Option<String>,
    /// Only runs that failed, were refused or lost.
    #[serde(default)]
    failed: bool,
    /// Only runs since this time: `2026-01-31T12:00:00Z`, or how long ago: `7d`.
    since: Option<String>,
    /// Maximum number of runs, 100 by default.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
    /// Only runs before this one: the last of the page before.
    before: Option<RunId>,
}

/// A list of runs.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RunList {
    runs: Vec<RunSummary>,
    /// The value of `before` for the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<RunId>,
}

/// The number of runs on a page without `limit`, and the maximum.
const DEFAULT_PAGE: usize = 100;
const MAX_PAGE: usize = 1_000;

impl<'de> Deserialize<'de> for StartRun {
    /// Takes `session` out of the object, because [`RunRequest`] refuses unknown keys.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = StartRun;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<StartRun, A::Error> {
                let mut session = None;
                let request = RunRequest::deserialize(MapAccessDeserializer::new(WithoutSession {
                    map,
                    session: &mut session,
                }))
                .map_err(list_session_field)?;
                Ok(StartRun { session, request })
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

/// Adds `session` to the fields that the error for an unknown field lists.
fn list_session_field<E: serde::de::Error>(error: E) -> E {
    let message = error.to_string();
    match message.strip_prefix("unknown field ") {
        // The position is added again.
        Some(_) => {
            let message = message
                .rsplit_once(" at line ")
                .map_or(message.as_str(), |(text, _)| text);
            E::custom(message.replacen("expected one of ", "expected one of `session`, ", 1))
        }
        None => error,
    }
}

/// The entries of an object except `session`, whose value it stores.
struct WithoutSession<'a, A> {
    map: A,
    session: &'a mut Option<String>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for WithoutSession<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        while let Some(key) = self.map.next_key::<String>()? {
            if key != "session" {
                return seed.deserialize(key.into_deserializer()).map(Some);
            }
            *self.session = self.map.next_value()?;
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
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
    let key = idempotency_key(request.headers())?;
    let body = read_json(request, &tenant.body_budget, app.limits.get().max_body_bytes).await?;
    let JsonBody {
        value: StartRun { session, request },
        reservation,
    } = body.ok_or_else(|| ApiError::invalid("the body is empty; expected JSON"))?;
    let session = session.as_deref().map(sessions::parse_session_id).transpose()?;
    let wait = query.wait.map(wait_duration).transpose()?;
    if let Some(id) = session.clone() {
        let tenant = tenant.clone();
        run_blocking(move || sessions::find_session_id(&tenant, id.as_str())).await?;
    }
    let record = match &key {
        None => start_run(&app, &tenant, request, session, reservation)?,
        Some(key) => {
            let digest = digest_of(&request, session.as_ref());
            let start = || start_run(&app, &tenant, request, session, reservation);
            tenant
                .idempotency_keys
                .find_or_start(key, digest, &tenant.runs, start)?
        }
    };
    let Some(wait) = wait else {
        return Ok(run_response(StatusCode::ACCEPTED, &record.state()));
    };
    // A client with a key may ask again for the same run after its connection broke.
    let cancel_on_drop = key.is_none().then(|| CancelRunOnDrop::new(record.clone()));
    let is_finished = tokio::time::timeout(wait, record.finished()).await.is_ok();
    if let Some(cancel_on_drop) = cancel_on_drop {
        cancel_on_drop.disarm();
    }
    match record.state() {
        // A client that waited receives the refusal as an error response.
        RunState::Finished(RunResult {
            refusal: Some(error), ..
        }) => Err(ApiError::clone(&error)),
        state if is_finished => Ok(run_response(StatusCode::OK, &state)),
        state => Ok(run_response(StatusCode::ACCEPTED, &state)),
    }
}

/// The value of `Idempotency-Key`, if the request has one.
fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = headers.get("idempotency-key") else {
        return Ok(None);
    };
    let text = value
        .to_str()
        .map_err(|_| ApiError::invalid("not printable ASCII").with_field("Idempotency-Key"))?;
    Ok(Some(text.to_owned()))
}

fn digest_of(request: &RunRequest, session: Option<&SessionId>) -> RequestDigest {
    Sha256::digest(json!([request, session]).to_string()).into()
}

pub(crate) async fn list(
    Extension(tenant): Extension<Arc<Tenant>>,
    Query(query): Query<ListQuery>,
) -> Result<Json<RunList>, ApiError> {
    let limit = query.limit.unwrap_or(DEFAULT_PAGE);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(ApiError::invalid(format!("{limit} is not between 1 and {MAX_PAGE}")).with_field("limit"));
    }
    let filter = RunFilter {
        tenant: TenantFilter::Only(tenant.name.clone()),
        skill: query.skill,
        failed: query.failed,
        since_ms: query.since.as_deref().map(parse_since).transpose()?.unwrap_or_default(),
        before: query.before,
        limit: Some(limit),
    };
    run_blocking(move || {
        let past = tenant.runtime.history().list(&filter).map_err(history_error)?;
        // The server knows runs that wait, and all of its runs if the host keeps no history.
        let own = tenant.runs.all();
        let own = own
            .iter()
            .map(|run| run.summary(tenant.name.as_ref()))
            .filter(|run| filter.matches(run));
        let by_id = |run: RunSummary| (run.run_id.clone(), run);
        let all: BTreeMap<RunId, RunSummary> = own.map(by_id).chain(past.runs.into_iter().map(by_id)).collect();
        let has_more = past.has_more || all.len() > limit;
        let runs: Vec<RunSummary> = all.into_values().rev().take(limit).collect();
        let next = runs.last().filter(|_| has_more).map(|run| run.run_id.clone());
        Ok(Json(RunList { runs, next }))
    })
    .await
}

/// A time in milliseconds since 1970.
fn parse_since(text: &str) -> Result<u64, ApiError> {
    let time = match humantime::parse_duration(text) {
        Ok(ago) => SystemTime::now().checked_sub(ago),
        Err(_) => humantime::parse_rfc3339_weak(text).ok(),
    };
    let since = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let since = since.ok_or_else(|| {
        let message = format!("{text:?} is neither a time such as 2026-01-31T12:00:00Z nor a duration such as 7d");
        ApiError::invalid(message).with_field("since")
    })?;
    Ok(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

fn history_error(error: HistoryError) -> ApiError {
    ApiError::new(error.code(), error.to_string())
}

pub(crate) async fn show(
    Extension(tenant): Extension<Arc<Tenant>>,
    Query(query): Query<WaitQuery>,
    path: PathParams,
) -> Result<Response, ApiError> {
    let record = match find_run(&tenant, path.first()) {
        Ok(record) => record,
        Err(unknown) => return show_past_run(tenant, path.first(), unknown).await,
    };
    if let Some(wait) = query.wait {
        // A timeout is not an error: the response contains the current state.
        let _timed_out = tokio::time::timeout(wait_duration(wait)?, record.finished()).await;
    }
    Ok(run_response(StatusCode::OK, &record.state()))
}

/// A run of an earlier server, or one whose result is not in memory any more.
async fn show_past_run(tenant: Arc<Tenant>, id: &str, unknown: ApiError) -> Result<Response, ApiError> {
    let Ok(id) = RunId::parse(id) else { return Err(unknown) };
    run_blocking(move || {
        let filter = TenantFilter::Only(tenant.name.clone());
        let json = match tenant.runtime.history().show(&id, &filter) {
            Ok(run) => past_run_json(&run),
            Err(HistoryError::Unknown(_)) => return Err(unknown),
            Err(error) => return Err(history_error(error)),
        };
        let body = Bytes::from_owner(SharedText(json));
        Ok((StatusCode::OK, [(CONTENT_TYPE, "application/json")], body).into_response())
    })
    .await
}

pub(crate) async fn remove(Extension(tenant): Extension<Arc<Tenant>>, path: PathParams) -> Result<Response, ApiError> {
    let record = find_run(&tenant, path.first())?;
    record.cancel();
    if tokio::time::timeout(CANCEL_TIMEOUT, record.finished()).await.is_err() {
        return Err(ApiError::busy("the run is cancelled, but has not ended yet"));
    }
    tenant.runs.remove(&record.id);
    let state = record.state();
    run_blocking(move || match tenant.runtime.history().remove(&record.id) {
        Ok(()) | Err(HistoryError::Unknown(_)) => Ok(()),
        Err(error) => Err(history_error(error)),
    })
    .await?;
    Ok(run_response(StatusCode::OK, &state))
}

/// Finds a run of this tenant.
pub(super) fn find_run(tenant: &Tenant, id: &str) -> Result<Arc<RunRecord>, ApiError> {
    match tenant.runs.find(id) {
        KnownRun::Found(record) => Ok(record),
        KnownRun::Gone => {
            let message = format!("the run {id:?} was deleted, or its result has expired");
            Err(ApiError::new(ErrorCode::RunGone, message))
        }
        KnownRun::Unknown => Err(ApiError::new(ErrorCode::RunUnknown, format!("unknown run {id:?}"))),
    }
}

/// Downloads a collected file of a run.
pub(crate) async fn file(
    Extension(tenant): Extension<Arc<Tenant>>,
    path: PathParams,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let record = find_run(&tenant, path.first())?;
    let RunState::Finished(_) = record.state() else {
        let error = ApiError::new(ErrorCode::Busy, "the run has not ended yet");
        return Err(error.with_hint("wait for the result, for example with `GET /v1/runs/{id}?wait=60`"));
    };
    let name = path.last().to_owned();
    let Some(files) = record.files() else {
        let message = "the run has no collected files, or they are no longer kept";
        return Err(ApiError::new(ErrorCode::RunGone, message));
    };
    let Some(file) = files.get(&name).cloned() else {
        let message = format!("the run collected no file {name:?}");
        let error = ApiError::new(ErrorCode::NotFound, message).with_field("path");
        return Err(error.with_hint("the names are in `output_files` of the result"));
    };
    let response = FileResponse {
        size: file.size,
        mime_type: Some(file.mime_type.clone()),
        etag: Some(file.digest.to_string()),
        open: Box::new(move |part| Ok(Box::new(files.read(&file, part.unwrap_or(0..file.size))))),
    };
    send_file(response, &headers).await
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
