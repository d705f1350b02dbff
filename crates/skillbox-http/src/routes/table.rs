//! The table of all routes.

use std::sync::Arc;

use axum::Router;
use axum::http::{Method, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use skillbox_model::ErrorCode;

use super::{agent, artifacts, files, run_events, runs, service, sessions, skills, tools};
use crate::app::App;
use crate::authentication::{authenticate, reject_foreign_hosts};
use crate::error::ApiError;
use crate::openapi::{DescribedRoutes, Operation, RouteBuilder};
use crate::request_log::log_request;

const SESSION_ID: &str = "Session ID";
const RUN_ID: &str = "Run ID";

/// The routes for all clients, and the routes for authenticated clients.
pub(crate) struct RouteTables {
    pub public: DescribedRoutes,
    pub authenticated: DescribedRoutes,
}

/// All routes, each with its description.
pub(crate) fn route_tables() -> RouteTables {
    let mut authenticated = RouteBuilder::new();
    for add_routes in [
        add_metrics_route,
        add_skill_routes,
        add_session_routes,
        add_run_routes,
        add_artifact_routes,
    ] {
        authenticated = add_routes(authenticated);
    }
    RouteTables {
        public: public_routes(),
        authenticated: authenticated.finish(),
    }
}

fn public_routes() -> DescribedRoutes {
    let service = |path, summary| Operation::get(path, "Service", summary);
    RouteBuilder::new()
        .add(
            service("/healthz", "Liveness check").returns_json::<service::Health>(200, "The server is running"),
            service::health,
        )
        .add(
            service("/readyz", "Readiness check").returns_json::<service::Health>(200, "The server accepts work"),
            service::ready,
        )
        .add(
            service("/openapi.json", "OpenAPI document").returns_content(
                200,
                "OpenAPI 3.1 document",
                "application/json",
                |_| json!({"type": "object"}),
            ),
            service::openapi,
        )
        .add(
            service("/docs", "API reference").returns_content(200, "HTML page", "text/html", text_schema),
            service::docs,
        )
        .finish()
}

fn add_metrics_route(routes: RouteBuilder) -> RouteBuilder {
    routes.add(
        Operation::get("/metrics", "Service", "Prometheus metrics").returns_content(
            200,
            "Metrics in Prometheus text format",
            "text/plain",
            text_schema,
        ),
        service::metrics,
    )
}

fn add_skill_routes(routes: RouteBuilder) -> RouteBuilder {
    routes
        .add(
            Operation::get("/v1/skills", "Skills", "List or search skills")
                .query::<skills::SkillsQuery>()
                .returns_json::<skills::SkillList>(200, "Skills; for a search, best match first"),
            skills::list,
        )
        .add(
            Operation::get("/v1/skills/{name}", "Skills", "Get a skill")
                .path_param("name", "Skill name")
                .returns_json::<skills::SkillInfo>(200, "Skill details"),
            skills::info,
        )
}

fn add_session_routes(routes: RouteBuilder) -> RouteBuilder {
    routes
        .add(
            Operation::get("/v1/sessions", "Sessions", "List sessions")
                .returns_json::<sessions::SessionList>(200, "Sessions, sorted by ID"),
            sessions::list,
        )
        .add(
            Operation::new(Method::POST, "/v1/sessions", "Sessions", "Create a session")
                .accepts_json::<sessions::NewSession>()
                .returns_json::<sessions::SessionView>(201, "Created session"),
            sessions::create,
        )
        .add(
            Operation::get("/v1/sessions/{id}", "Sessions", "Get a session and its loaded skills")
                .path_param("id", SESSION_ID)
                .returns_json::<sessions::SessionState>(200, "Session state"),
            sessions::show,
        )
        .add(
            Operation::new(
                Method::DELETE,
                "/v1/sessions/{id}",
                "Sessions",
                "Delete a session; cancels its runs and removes its workspace and artifacts",
            )
            .path_param("id", SESSION_ID)
            .returns_nothing(204, "Session deleted"),
            sessions::remove,
        )
        .add(
            Operation::get(
                "/v1/sessions/{id}/prompt",
                "Sessions",
                "Get the system prompt section for an agent",
            )
            .path_param("id", SESSION_ID)
            .query::<agent::AgentQuery>()
            .returns_json::<agent::PromptResponse>(200, "Prompt section; empty if there is nothing to disclose"),
            agent::prompt,
        )
        .add(
            Operation::new(
                Method::POST,
                "/v1/sessions/{id}/prompt",
                "Sessions",
                "Get the system prompt section with your own template or load instructions",
            )
            .path_param("id", SESSION_ID)
            .query::<agent::AgentQuery>()
            .accepts_json::<agent::PromptTexts>()
            .returns_json::<agent::PromptResponse>(200, "Prompt section; empty if there is nothing to disclose"),
            agent::prompt_with_texts,
        )
        .add(
            Operation::get(
                "/v1/sessions/{id}/tools",
                "Sessions",
                "List the tool definitions for an agent, with the host tools that its loaded skills unlock",
            )
            .path_param("id", SESSION_ID)
            .query::<tools::ToolsQuery>()
            .returns_json::<Vec<serde_json::Map<String, Value>>>(200, "Tool definitions, in the order of the dialect"),
            tools::list,
        )
        .add(
            Operation::new(
                Method::POST,
                "/v1/sessions/{id}/tools/{name}",
                "Sessions",
                "Call a tool",
            )
            .path_param("id", SESSION_ID)
            .path_param(
                "name",
                "Tool name in the dialect, or a host call: `before_agent`, `wrap_tool_call`, `after_tool_call`, `fire_event`, `return_result` or `register_tools`",
            )
            .query::<tools::CallQuery>()
            .accepts_json::<Value>()
            .returns_json::<Value>(200, "Tool result"),
            tools::call,
        )
        .add(
            Operation::get(
                "/v1/sessions/{id}/files/{*path}",
                "Sessions",
                "Download a file from the workspace of a session",
            )
            .path_param("id", SESSION_ID)
            .path_param("path", "Path relative to the workspace, such as `out/chart.svg`")
            .header("Range", "Byte range, such as `bytes=0-99`")
            .returns_content(200, "File content", "*/*", binary_schema)
            .returns_content(206, "Partial content", "*/*", binary_schema),
            files::get,
        )
}

fn add_run_routes(routes: RouteBuilder) -> RouteBuilder {
    routes
        .add(
            Operation::get("/v1/runs", "Runs", "List active and past runs")
                .query::<runs::ListQuery>()
                .returns_json::<runs::RunList>(200, "Runs, newest first"),
            runs::list,
        )
        .add(
            Operation::new(
                Method::POST,
                "/v1/runs",
                "Runs",
                "Run a command of a skill in the sandbox",
            )
            .query::<runs::StartQuery>()
            .bounded_header(
                "Idempotency-Key",
                "A key of the client: a request with the same key and content returns the first one's run",
                255,
            )
            .requires_json::<runs::StartRun>()
            .returns_json::<crate::runs::RunView<'static>>(200, "The run has ended")
            .returns_json::<crate::runs::RunView<'static>>(202, "The run is queued or running"),
            runs::start,
        )
        .add(
            Operation::get("/v1/runs/{id}", "Runs", "Get the state and the result of a run")
                .path_param("id", RUN_ID)
                .query::<runs::WaitQuery>()
                .returns_json::<crate::runs::RunView<'static>>(200, "Run state"),
            runs::show,
        )
        .add(
            Operation::new(
                Method::DELETE,
                "/v1/runs/{id}",
                "Runs",
                "Cancel a run and delete its result",
            )
            .path_param("id", RUN_ID)
            .returns_json::<crate::runs::RunView<'static>>(200, "Final state of the run"),
            runs::remove,
        )
        .add(
            Operation::get(
                "/v1/runs/{id}/files/{*path}",
                "Runs",
                "Download a collected file of a run, for `results_ttl` after its end",
            )
            .path_param("id", RUN_ID)
            .path_param("path", "Name of the file in `output_files`, such as `out/chart.svg`")
            .header("Range", "Byte range, such as `bytes=0-99`")
            .returns_content(200, "File content", "*/*", binary_schema)
            .returns_content(206, "Partial content", "*/*", binary_schema),
            runs::file,
        )
        .add(
            Operation::get("/v1/runs/{id}/events", "Runs", "Stream the events of a run")
                .path_param("id", RUN_ID)
                .header(
                    "Last-Event-ID",
                    "ID of the last event received; the stream continues after it",
                )
                .returns_content(
                    200,
                    "Server-sent events; the last one is `done`",
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

fn add_artifact_routes(routes: RouteBuilder) -> RouteBuilder {
    const ARTIFACT_NAME: &str = "Artifact name, which may contain slashes; append `@N` for version N";
    routes
        .add(
            Operation::get(
                "/v1/artifacts",
                "Artifacts",
                "List the newest versions, or all versions of one artifact",
            )
            .query::<artifacts::ListQuery>()
            .returns_json::<artifacts::ArtifactList>(200, "Artifacts"),
            artifacts::list,
        )
        .add(
            Operation::get("/v1/artifacts/{*name}", "Artifacts", "Download an artifact")
                .path_param("name", ARTIFACT_NAME)
                .query::<artifacts::ScopeQuery>()
                .header("Range", "Byte range, such as `bytes=0-99`")
                .returns_content(200, "Artifact content", "*/*", binary_schema)
                .returns_content(206, "Partial content", "*/*", binary_schema),
            artifacts::get,
        )
        .add(
            Operation::new(
                Method::PUT,
                "/v1/artifacts/{*name}",
                "Artifacts",
                "Upload a new version of an artifact",
            )
            .path_param("name", "Artifact name, which may contain slashes")
            .query::<artifacts::ScopeQuery>()
            .requires_bytes()
            .returns_json::<artifacts::ArtifactView>(201, "Stored version"),
            artifacts::put,
        )
        .add(
            Operation::new(
                Method::DELETE,
                "/v1/artifacts/{*name}",
                "Artifacts",
                "Delete one version, or all versions",
            )
            .path_param("name", ARTIFACT_NAME)
            .query::<artifacts::ScopeQuery>()
            .returns_json::<artifacts::ArtifactList>(200, "Deleted versions"),
            artifacts::remove,
        )
}

fn binary_schema(_: &mut crate::openapi::Schemas) -> Value {
    json!({"type": "string", "format": "binary"})
}

fn text_schema(_: &mut crate::openapi::Schemas) -> Value {
    json!({"type": "string"})
}

/// The router with all middleware.
pub(crate) fn router(tables: RouteTables, app: &Arc<App>) -> Router {
    let authenticated = tables
        .authenticated
        .router
        .route_layer(from_fn_with_state(app.clone(), authenticate));
    tables
        .public
        .router
        .merge(authenticated)
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn_with_state(app.clone(), reject_foreign_hosts))
        .layer(from_fn_with_state(app.clone(), log_request))
        .with_state(app.clone())
}

async fn not_found() -> ApiError {
    ApiError::new(ErrorCode::NotFound, "there is no resource at this path")
}

async fn method_not_allowed() -> Response {
    let error = ApiError::invalid("this path does not support this method");
    error.with_status(StatusCode::METHOD_NOT_ALLOWED).into_response()
}
