//! Every route there is.

use std::sync::Arc;

use axum::Router;
use axum::http::{Method, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use skillbox_model::ErrorCode;

use super::{agent, artifacts, files, run_events, runs, service, sessions, skills, tools};
use crate::app::App;
use crate::error::ApiError;
use crate::guard::{know_the_caller, only_this_machine};
use crate::openapi::{Api, Described, Operation};
use crate::request_log::log_request;

const SESSION: &str = "The session's name.";
const RUN: &str = "The run's id.";

/// What everybody may ask, and what only callers that are known may.
pub(crate) struct Tables {
    pub everybody: Described,
    pub known: Described,
}

/// The tables, before anything is served.
pub(crate) fn tables() -> Tables {
    Tables {
        everybody: everybody(),
        known: with_artifacts(with_runs(with_sessions(with_skills(Api::new())))).finish(),
    }
}

fn everybody() -> Described {
    let service = |path, summary| Operation::get(path, "Service", summary);
    Api::new()
        .serve(
            service("/healthz", "Whether the server lives").gives::<service::Health>(200, "It does."),
            service::health,
        )
        .serve(
            service("/readyz", "Whether it takes on work").gives::<service::Health>(200, "It does."),
            service::ready,
        )
        .serve(
            service("/openapi.json", "This description").gives_other(
                200,
                "OpenAPI 3.1.",
                "application/json",
                |_| json!({"type": "object"}),
            ),
            service::openapi,
        )
        .serve(
            service("/docs", "The same for people").gives_other(200, "A page.", "text/html", text),
            service::docs,
        )
        .finish()
}

fn with_skills(api: Api) -> Api {
    api.serve(
        Operation::get("/metrics", "Service", "What is counted, for Prometheus").gives_other(
            200,
            "The text format of Prometheus.",
            "text/plain",
            text,
        ),
        service::metrics,
    )
    .serve(
        Operation::get("/v1/skills", "Skills", "The skills there are, or the best for a query")
            .query::<skills::SkillsQuery>()
            .gives::<skills::SkillList>(200, "The skills; with a query, best first."),
        skills::list,
    )
    .serve(
        Operation::get("/v1/skills/{name}", "Skills", "Everything about one skill")
            .part("name", "The skill's name.")
            .gives::<skills::SkillInfo>(200, "The skill."),
        skills::info,
    )
}

fn with_sessions(api: Api) -> Api {
    api.serve(
        Operation::get("/v1/sessions", "Sessions", "The sessions of the caller")
            .gives::<sessions::SessionList>(200, "The sessions, by name."),
        sessions::list,
    )
    .serve(
        Operation::new(Method::POST, "/v1/sessions", "Sessions", "Makes a session")
            .may_take::<sessions::NewSession>()
            .gives::<sessions::SessionView>(201, "The session."),
        sessions::create,
    )
    .serve(
        Operation::get(
            "/v1/sessions/{id}",
            "Sessions",
            "A session, and what its agents have loaded",
        )
        .part("id", SESSION)
        .gives::<sessions::SessionState>(200, "The session."),
        sessions::show,
    )
    .serve(
        Operation::new(
            Method::DELETE,
            "/v1/sessions/{id}",
            "Sessions",
            "Ends a session's runs and removes everything of it",
        )
        .part("id", SESSION)
        .gives_nothing(204, "It is gone."),
        sessions::remove,
    )
    .serve(
        Operation::get(
            "/v1/sessions/{id}/prompt",
            "Sessions",
            "The section of the agent's system prompt",
        )
        .part("id", SESSION)
        .query::<agent::AgentQuery>()
        .gives::<agent::PromptAnswer>(200, "The section; empty where there is nothing to say."),
        agent::prompt,
    )
    .serve(
        Operation::get(
            "/v1/sessions/{id}/tools",
            "Sessions",
            "The definitions of the agent's tools",
        )
        .part("id", SESSION)
        .query::<tools::ToolsQuery>()
        .gives::<Vec<serde_json::Map<String, Value>>>(200, "The definitions, in the order of the dialect."),
        tools::list,
    )
    .serve(
        Operation::new(
            Method::POST,
            "/v1/sessions/{id}/tools/{name}",
            "Sessions",
            "Makes one tool call",
        )
        .part("id", SESSION)
        .part(
            "name",
            "The tool's name in the dialect, or a verb of hosts such as `before_agent`.",
        )
        .query::<tools::CallQuery>()
        .may_take::<Value>()
        .gives::<Value>(200, "The tool's result."),
        tools::call,
    )
    .serve(
        Operation::get(
            "/v1/sessions/{id}/files/{*path}",
            "Sessions",
            "A file of the session's workspace",
        )
        .part("id", SESSION)
        .part("path", "The path below the workspace, such as `out/chart.svg`.")
        .header("Range", "A part of it: `bytes=0-99`.")
        .gives_other(200, "The file.", "*/*", |_| json!({}))
        .gives_other(206, "The part.", "*/*", |_| json!({})),
        files::get,
    )
}

fn with_runs(api: Api) -> Api {
    api.serve(
        Operation::get(
            "/v1/runs",
            "Runs",
            "The caller's runs: those that go on and the last that are over",
        )
        .gives::<runs::RunList>(200, "The runs, oldest first."),
        runs::list,
    )
    .serve(
        Operation::new(
            Method::POST,
            "/v1/runs",
            "Runs",
            "Runs a skill's command in the sandbox",
        )
        .query::<runs::StartQuery>()
        .takes::<runs::StartRun>()
        .gives::<crate::runs::RunView<'static>>(200, "It is over.")
        .gives::<crate::runs::RunView<'static>>(202, "It goes on."),
        runs::start,
    )
    .serve(
        Operation::get("/v1/runs/{id}", "Runs", "How far a run is, and its result")
            .part("id", RUN)
            .query::<runs::WaitQuery>()
            .gives::<crate::runs::RunView<'static>>(200, "The run."),
        runs::show,
    )
    .serve(
        Operation::new(Method::DELETE, "/v1/runs/{id}", "Runs", "Ends a run and forgets it")
            .part("id", RUN)
            .gives::<crate::runs::RunView<'static>>(200, "The run as it ended."),
        runs::remove,
    )
    .serve(
        Operation::get("/v1/runs/{id}/events", "Runs", "What a run tells, as it tells it")
            .part("id", RUN)
            .header("Last-Event-ID", "Begin after this event.")
            .gives_other(
                200,
                "A stream of events; the last is `done`.",
                "text/event-stream",
                |_| {
                    json!({"type": "object", "properties": {
                        "id": {"type": "string"}, "event": {"type": "string"}, "data": {"type": "string"},
                    }})
                },
            ),
        run_events::stream,
    )
}

fn with_artifacts(api: Api) -> Api {
    const NAME: &str = "The artifact's name, which may have slashes; `@N` at its end means version N.";
    api.serve(
        Operation::get(
            "/v1/artifacts",
            "Artifacts",
            "The newest version of every artifact, or all of one name",
        )
        .query::<artifacts::ListQuery>()
        .gives::<artifacts::ArtifactList>(200, "The artifacts."),
        artifacts::list,
    )
    .serve(
        Operation::get("/v1/artifacts/{*name}", "Artifacts", "An artifact's content")
            .part("name", NAME)
            .query::<artifacts::ScopeQuery>()
            .header("Range", "A part of it: `bytes=0-99`.")
            .gives_other(200, "The content.", "*/*", |_| json!({}))
            .gives_other(206, "The part.", "*/*", |_| json!({})),
        artifacts::get,
    )
    .serve(
        Operation::new(
            Method::PUT,
            "/v1/artifacts/{*name}",
            "Artifacts",
            "Stores the body as the next version",
        )
        .part("name", "The artifact's name, which may have slashes.")
        .query::<artifacts::ScopeQuery>()
        .takes_bytes()
        .gives::<artifacts::ArtifactView>(201, "The version."),
        artifacts::put,
    )
    .serve(
        Operation::new(
            Method::DELETE,
            "/v1/artifacts/{*name}",
            "Artifacts",
            "Removes a version, or all of a name",
        )
        .part("name", NAME)
        .query::<artifacts::ScopeQuery>()
        .gives::<artifacts::ArtifactList>(200, "What was removed."),
        artifacts::remove,
    )
}

fn text(_: &mut crate::openapi::Schemas) -> Value {
    json!({"type": "string"})
}

/// The routes with everything around them.
pub(crate) fn router(tables: Tables, app: &Arc<App>) -> Router {
    let known = tables
        .known
        .router
        .route_layer(from_fn_with_state(app.clone(), know_the_caller));
    tables
        .everybody
        .router
        .merge(known)
        .fallback(nothing_here)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(app.clone(), only_this_machine))
        .layer(from_fn_with_state(app.clone(), log_request))
        .with_state(app.clone())
}

async fn nothing_here() -> ApiError {
    ApiError::new(ErrorCode::NotFound, "nothing is served at this address")
}

async fn wrong_method() -> Response {
    let error = ApiError::invalid("this address does not take this method");
    error.with_status(StatusCode::METHOD_NOT_ALLOWED).into_response()
}
