//! The names of the operations, which code generators turn into functions.

use axum::http::Method;

/// The operation ID of a route.
pub(super) fn operation_id(method: &Method, path: &str) -> &'static str {
    match (method.as_str(), path) {
        ("GET", "/healthz") => "check_health",
        ("GET", "/readyz") => "check_readiness",
        ("GET", "/openapi.json") => "get_openapi",
        ("GET", "/docs") => "get_docs",
        ("GET", "/metrics") => "get_metrics",
        ("GET", "/v1/skills") => "list_skills",
        ("GET", "/v1/skills/{name}") => "get_skill",
        ("GET", "/v1/sessions") => "list_sessions",
        ("POST", "/v1/sessions") => "create_session",
        ("GET", "/v1/sessions/{id}") => "get_session",
        ("DELETE", "/v1/sessions/{id}") => "delete_session",
        ("GET", "/v1/sessions/{id}/prompt") => "get_prompt",
        ("POST", "/v1/sessions/{id}/prompt") => "render_prompt",
        ("GET", "/v1/sessions/{id}/tools") => "list_tools",
        ("POST", "/v1/sessions/{id}/tools/{name}") => "call_tool",
        ("GET", "/v1/sessions/{id}/files/{*path}") => "get_session_file",
        ("GET", "/v1/runs") => "list_runs",
        ("POST", "/v1/runs") => "start_run",
        ("GET", "/v1/runs/{id}") => "get_run",
        ("DELETE", "/v1/runs/{id}") => "delete_run",
        ("GET", "/v1/runs/{id}/files/{*path}") => "get_run_file",
        ("GET", "/v1/runs/{id}/events") => "stream_run_events",
        ("GET", "/v1/artifacts") => "list_artifacts",
        ("GET", "/v1/artifacts/{*name}") => "get_artifact",
        ("PUT", "/v1/artifacts/{*name}") => "put_artifact",
        ("DELETE", "/v1/artifacts/{*name}") => "delete_artifact",
        (method, path) => unreachable!("the operation {method} {path} has no name"),
    }
}
