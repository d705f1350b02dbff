//! The tools of an agent: defined, and called.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use skillbox_executor::{Cancel, EventSink};
use skillbox_model::ErrorCode;
use skillbox_runtime::{Caller, Dialect, ToolCall, ToolFormat, ToolOutcome};

use super::agent::AgentQuery;
use super::sessions;
use crate::app::{App, in_background};
use crate::error::ApiError;
use crate::extract::{PathText, Query, read_json};
use crate::tenant::Tenant;

/// Which definitions.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolsQuery {
    /// Names, parameters and texts; the server's own by default.
    dialect: Option<Dialect>,
    /// The agent of the session, where it has several.
    #[schemars(regex(pattern = r"^[^\x00-\x1f\x7f-\x9f]{1,128}$"))]
    agent: Option<String>,
    /// In whose shape.
    format: Option<Format>,
}

/// In whose shape definitions are written.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ToolFormat")]
enum Format {
    Mcp,
    Openai,
    Anthropic,
}

/// Whose call it is, and how it is answered.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallQuery {
    /// Names, parameters and texts; the server's own by default.
    dialect: Option<Dialect>,
    /// The agent of the session, where it has several.
    #[schemars(regex(pattern = r"^[^\x00-\x1f\x7f-\x9f]{1,128}$"))]
    agent: Option<String>,
    /// On whose behalf; some skills may be loaded by the user only.
    caller: Option<Who>,
    /// What comes back: the result alone, or an object with `result`, `text` for the model, `state_delta` and `hooks`.
    answer: Option<Shape>,
}

/// On whose behalf.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Who {
    Model,
    User,
}

/// How much comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Shape {
    Result,
    Full,
}

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Extension(tenant): Extension<Arc<Tenant>>,
    Query(query): Query<ToolsQuery>,
    path: PathText,
) -> Result<Json<Vec<Value>>, ApiError> {
    let whose = AgentQuery {
        dialect: query.dialect,
        agent: query.agent,
    };
    let format = match query.format.unwrap_or(Format::Mcp) {
        Format::Mcp => ToolFormat::Mcp,
        Format::Openai => ToolFormat::OpenAi,
        Format::Anthropic => ToolFormat::Anthropic,
    };
    in_background(move || {
        let session = whose.open(&app, &tenant, path.first())?;
        let tools = session.tools(&whose.agent()?);
        let tools = tools.map_err(|error| ApiError::of_tool(&error, session.settings().dialect))?;
        Ok(Json(tools.iter().map(|tool| tool.to_format(format)).collect()))
    })
    .await
}

pub(crate) async fn call(
    State(app): State<Arc<App>>,
    Extension(tenant): Extension<Arc<Tenant>>,
    Query(query): Query<CallQuery>,
    path: PathText,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let whose = AgentQuery {
        dialect: query.dialect,
        agent: query.agent,
    };
    let call = ToolCall {
        tool: path.last().to_owned(),
        arguments: read_json(request, app.limits.body).await?.unwrap_or_default(),
        agent: whose.agent()?,
        caller: match query.caller {
            None | Some(Who::Model) => Caller::Model,
            Some(Who::User) => Caller::User,
        },
    };
    // A session that is not there is no reason to wait.
    let known = {
        let (tenant, session) = (tenant.clone(), path.first().to_owned());
        in_background(move || sessions::known(&tenant, &session)).await?
    };
    let outcome = make(&app, &tenant, whose, known.as_str().to_owned(), call).await?;
    Ok(Json(match query.answer {
        Some(Shape::Full) => json!({
            "result": outcome.result, "text": outcome.text,
            "state_delta": outcome.state_delta(), "hooks": outcome.hooks,
        }),
        None | Some(Shape::Result) => outcome.into_json(),
    }))
}

/// Ends a run whose caller has gone.
struct EndsWithCaller(Cancel);

impl Drop for EndsWithCaller {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

async fn make(
    app: &Arc<App>,
    tenant: &Arc<Tenant>,
    whose: AgentQuery,
    session: String,
    call: ToolCall,
) -> Result<ToolOutcome, ApiError> {
    if app.stopping.is_cancelled() {
        return Err(ApiError::busy("the server is about to end"));
    }
    let place = app.gate.enter().inspect_err(|_| app.metrics.run_sent_away())?;
    let turn = tokio::select! {
        turn = place.turn() => turn?,
        () = app.killing.cancelled() => return Err(ApiError::new(ErrorCode::Cancelled, "cancelled before it began")),
    };
    let cancel = Cancel::new().map_err(|error| ApiError::internal(&error))?;
    let switch = EndsWithCaller(cancel.clone());
    let begun = Instant::now();
    let mut work = {
        let (app, tenant, span) = (app.clone(), tenant.clone(), tracing::Span::current());
        app.clone().work.spawn_blocking(move || {
            let _inside = span.entered();
            // The turn lasts as long as the work does, whether anybody waits for it or not.
            let _turn = turn;
            let session = whose.open(&app, &tenant, &session)?;
            let outcome = session.call_with(&call, EventSink::silent(), Some(&cancel));
            outcome.map_err(|error| ApiError::of_tool(&error, session.settings().dialect))
        })
    };
    let done = tokio::select! {
        done = &mut work => done,
        () = app.killing.cancelled() => {
            switch.0.cancel();
            work.await
        }
    };
    let outcome = done.map_err(|error| ApiError::internal(&error))??;
    if let Some(report) = &outcome.report {
        app.metrics.run_over(Some(report), begun.elapsed());
    }
    Ok(outcome)
}
