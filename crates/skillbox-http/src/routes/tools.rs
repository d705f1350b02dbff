//! The tools of an agent: definitions and calls.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use skillbox_executor::{CancelToken, EventSink};
use skillbox_model::ErrorCode;
use skillbox_runtime::{Caller, Dialect, RunOrigin, ToolCall, ToolFormat, ToolOutcome};

use super::agent::AgentQuery;
use super::{files, sessions};
use crate::app::{App, run_blocking};
use crate::error::ApiError;
use crate::extract::{PathParams, Query, normalize_integers, read_json};
use crate::request_id::current_request_id;
use crate::tenant::Tenant;

/// Options for tool definitions.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolsQuery {
    /// Dialect of tool names, parameters and texts; defaults to the server's dialect.
    dialect: Option<Dialect>,
    /// Agent of the session, if it has several.
    #[schemars(regex(pattern = r"^[^\x00-\x1f\x7f-\x9f]{1,128}$"))]
    agent: Option<String>,
    /// Format of the definitions; default `mcp`.
    format: Option<Format>,
}

/// Format of tool definitions.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ToolFormat")]
enum Format {
    Mcp,
    Openai,
    Anthropic,
}

/// Options for a tool call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallQuery {
    /// Dialect of tool names, parameters and texts; defaults to the server's dialect.
    dialect: Option<Dialect>,
    /// Agent of the session, if it has several.
    #[schemars(regex(pattern = r"^[^\x00-\x1f\x7f-\x9f]{1,128}$"))]
    agent: Option<String>,
    /// Who makes the call; some skills can be loaded by the user only.
    caller: Option<CallerParam>,
    /// Content of the response: only the result, or an object with `result`, `text` for the model, `state_delta` and
    /// `hooks`.
    answer: Option<ResponseContent>,
}

/// Who makes a call.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum CallerParam {
    Model,
    User,
}

/// Content of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ResponseContent {
    Result,
    Full,
}

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Extension(tenant): Extension<Arc<Tenant>>,
    Query(query): Query<ToolsQuery>,
    path: PathParams,
) -> Result<Json<Vec<Value>>, ApiError> {
    let agent_query = AgentQuery {
        dialect: query.dialect,
        agent: query.agent,
    };
    let format = match query.format.unwrap_or(Format::Mcp) {
        Format::Mcp => ToolFormat::Mcp,
        Format::Openai => ToolFormat::OpenAi,
        Format::Anthropic => ToolFormat::Anthropic,
    };
    run_blocking(move || {
        let session = agent_query.open_session(&app, &tenant, path.first())?;
        let tools = session.tools(&agent_query.agent_name()?);
        let tools = tools.map_err(|error| ApiError::from_tool_error(&error, session.settings().dialect))?;
        Ok(Json(tools.iter().map(|tool| tool.to_format(format)).collect()))
    })
    .await
}

pub(crate) async fn call(
    State(app): State<Arc<App>>,
    Extension(tenant): Extension<Arc<Tenant>>,
    Query(query): Query<CallQuery>,
    path: PathParams,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let agent_query = AgentQuery {
        dialect: query.dialect,
        agent: query.agent,
    };
    let body = read_json(request, &tenant.body_budget, app.limits.get().max_body_bytes).await?;
    let (mut arguments, _reservation) = body.map(|body| (body.value, body.reservation)).unwrap_or_default();
    normalize_integers(&mut arguments);
    let call = ToolCall {
        tool: path.last().to_owned(),
        arguments,
        agent: agent_query.agent_name()?,
        caller: match query.caller {
            None | Some(CallerParam::Model) => Caller::Model,
            Some(CallerParam::User) => Caller::User,
        },
    };
    // An unknown session is reported before the call waits in the queue.
    let session = {
        let (tenant, id) = (tenant.clone(), path.first().to_owned());
        run_blocking(move || sessions::find_session_id(&tenant, &id)).await?
    };
    let mut outcome = call_tool(&app, &tenant, agent_query, session.as_str().to_owned(), call).await?;
    add_file_addresses(&mut outcome, session.as_str());
    Ok(Json(match query.answer {
        Some(ResponseContent::Full) => json!({
            "result": outcome.result, "text": outcome.text,
            "state_delta": outcome.state_delta(), "hooks": outcome.hooks,
        }),
        None | Some(ResponseContent::Result) => outcome.into_json(),
    }))
}

/// Adds to each file of a run the address that serves the whole file: the content in a result is short.
fn add_file_addresses(outcome: &mut ToolOutcome, session: &str) {
    if outcome.report.is_none() {
        return;
    }
    for file in outcome.result["output_files"].as_array_mut().into_iter().flatten() {
        if let Some(name) = file["name"].as_str() {
            file["url"] = json!(files::workspace_file_address(session, name));
        }
    }
}

/// Cancels the call when the request is dropped because its client disconnected.
struct CancelCallOnDrop(CancelToken);

impl Drop for CancelCallOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

async fn call_tool(
    app: &Arc<App>,
    tenant: &Arc<Tenant>,
    agent_query: AgentQuery,
    session: String,
    call: ToolCall,
) -> Result<ToolOutcome, ApiError> {
    if app.stopping.is_cancelled() {
        return Err(ApiError::busy("the server is shutting down"));
    }
    let joined = Instant::now();
    let ticket = app
        .run_queue
        .join()
        .inspect_err(|_| app.metrics.record_rejected_run())?;
    let permit = tokio::select! {
        permit = ticket.wait() => permit?,
        () = app.grace_period_over.cancelled() => return Err(ApiError::new(ErrorCode::Cancelled, "the call was cancelled before it started")),
    };
    let cancel = CancelToken::new().map_err(|error| ApiError::internal(&error))?;
    let cancel_on_drop = CancelCallOnDrop(cancel.clone());
    let origin = RunOrigin {
        request_id: current_request_id(),
        queue_wait: joined.elapsed(),
    };
    let mut work = {
        let (app, tenant, span) = (app.clone(), tenant.clone(), tracing::Span::current());
        app.clone().work.spawn_blocking(move || {
            let _entered = span.entered();
            // The permit is held as long as the work takes, even if the client has disconnected.
            let _permit = permit;
            let session = agent_query.open_session(&app, &tenant, &session)?.with_origin(origin);
            let outcome = session.call_with(&call, EventSink::silent(), Some(&cancel));
            outcome.map_err(|error| ApiError::from_tool_error(&error, session.settings().dialect))
        })
    };
    let result = tokio::select! {
        result = &mut work => result,
        () = app.grace_period_over.cancelled() => {
            cancel_on_drop.0.cancel();
            work.await
        }
    };
    result.map_err(|error| ApiError::internal(&error))?
}
