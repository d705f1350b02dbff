//! Serves many clients over streamable HTTP, at `/mcp`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::{Router, middleware};
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use crate::connection_tracker::ConnectionTracker;
use crate::http_accept;
use crate::request_handler::RequestHandler;
use crate::serve_error::ServeError;
use crate::server_state::ServerState;
use crate::session_handles::SessionsToEnd;
use crate::session_limit::SessionLimit;
use crate::session_name;
use crate::session_resolver::SessionResolver;
use crate::stop_signal::stop_on_signal;

/// A protocol session of the older revisions ends after this time without requests. Longer than the longest run.
const SESSION_IDLE_TIMEOUT: Duration = Duration::from_secs(70 * 60);
/// How often idle sessions are ended.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// How often sessions of disconnected clients are ended.
const ABANDONED_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Time for the requests in progress to finish once the server stops.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Serves clients on a loopback address until a signal arrives; `ready` receives the actual address. Requests for other
/// host names are refused, and so are requests of web pages whose origin `origins` does not contain.
pub fn serve_http(
    server: Arc<ServerState>,
    address: SocketAddr,
    origins: &[String],
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    if !address.ip().is_loopback() {
        return Err(ServeError::NotLoopback(address));
    }
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().worker_threads(worker_threads());
    let runtime = builder.build().map_err(ServeError::Start)?;
    let served = runtime.block_on(serve(server, address, origins, ready));
    runtime.shutdown_background();
    served
}

/// Half of the processors: serving needs little CPU time, and runs need the other half. A message passes through several
/// tasks, and more threads would mostly move it from one thread to another.
fn worker_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |processors| processors.get().div_ceil(2))
}

async fn serve(
    server: Arc<ServerState>,
    address: SocketAddr,
    origins: &[String],
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    let stopped = stop_on_signal().map_err(ServeError::Start)?;
    let listener = TcpListener::bind(address)
        .await
        .map_err(|source| ServeError::Listen { address, source })?;
    let address = listener.local_addr().map_err(ServeError::Start)?;
    ready(address);
    let own_origins = ["localhost", "127.0.0.1", "[::1]"].map(|name| format!("http://{name}:{}", address.port()));
    let config = StreamableHttpServerConfig::default()
        .with_allowed_origins(origins.iter().chain(&own_origins))
        .enforce_origin_validation()
        // Clients limit the size of an event, but not of a plain response: the Python SDK to 1 MiB.
        .with_json_response(true)
        .with_max_request_body_bytes(http_accept::MAX_REQUEST_BYTES)
        .with_cancellation_token(stopped.child_token());
    let mut session_config = SessionConfig::default();
    session_config.keep_alive = Some(SESSION_IDLE_TIMEOUT);
    let mut sessions = LocalSessionManager::default();
    sessions.session_config = session_config;
    let sessions = Arc::new(sessions);
    let service = StreamableHttpService::new(
        {
            let server = server.clone();
            move || Ok(RequestHandler::new(server.clone(), SessionResolver::http()))
        },
        sessions.clone(),
        config,
    );
    let connections = ConnectionTracker::default();
    let limit = SessionLimit::new(sessions.clone(), connections.clone());
    let session_cleanup = tokio::spawn({
        let (server, connections) = (server.clone(), connections.clone());
        async move {
            tokio::join!(
                end_idle_sessions(&server),
                end_abandoned_sessions(&sessions, &connections)
            )
        }
    });
    let router = Router::new()
        .nest_service("/mcp", service)
        .layer(middleware::from_fn_with_state(limit, SessionLimit::check))
        .layer(middleware::from_fn(session_name::read_session_name))
        .layer(middleware::from_fn(http_accept::buffer_body))
        .layer(middleware::from_fn_with_state(connections, ConnectionTracker::track));
    tokio::select! {
        () = http_accept::serve_connections(listener, router, &stopped) => {}
        () = async { stopped.cancelled().await; tokio::time::sleep(SHUTDOWN_TIMEOUT).await } => {}
    }
    session_cleanup.abort();
    server.handles.end_sessions(SessionsToEnd::All).await;
    server.end_sessions().await;
    Ok(())
}

async fn end_idle_sessions(server: &ServerState) {
    loop {
        tokio::time::sleep(IDLE_CHECK_INTERVAL).await;
        server.handles.end_sessions(SessionsToEnd::Idle).await;
    }
}

async fn end_abandoned_sessions(sessions: &LocalSessionManager, connections: &ConnectionTracker) {
    loop {
        tokio::time::sleep(ABANDONED_CHECK_INTERVAL).await;
        for id in connections.take_abandoned() {
            if let Err(error) = sessions.close_session(&id.as_str().into()).await {
                tracing::warn!(session = %id, "cannot close the session of a disconnected client: {error}");
            }
        }
    }
}
