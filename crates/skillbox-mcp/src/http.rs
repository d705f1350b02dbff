//! Many clients over streamable HTTP, at `/mcp`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::{Router, middleware};
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use crate::connections::Connections;
use crate::door;
use crate::host::Host;
use crate::seat::{Seat, Which};
use crate::server::SkillServer;
use crate::stdio::{ServeError, stop_on_signal};

/// A session of the older revisions that says nothing for so long is over; the longest run is shorter.
const LONGEST_SILENCE: Duration = Duration::from_secs(70 * 60);
/// How often sessions that nobody uses are looked for.
const SWEEP: Duration = Duration::from_secs(30);
/// How often clients that are gone are looked for.
const LOOK: Duration = Duration::from_secs(1);
/// How long answers that are under way may take once the server is to end.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// Serves clients on an address until a signal comes; `ready` is told where. Only this machine is let in: requests
/// for other hosts are refused, and those of web pages unless their origin is among `origins`.
pub fn serve_http(
    host: Arc<Host>,
    address: SocketAddr,
    origins: &[String],
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    if !address.ip().is_loopback() {
        return Err(ServeError::NotLoopback(address));
    }
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().worker_threads(threads_for_connections());
    let runtime = builder.build().map_err(ServeError::Start)?;
    let served = runtime.block_on(serve(host, address, origins, ready));
    runtime.shutdown_background();
    served
}

/// Half of the processors: serving is little work, and what is served needs the others. A message passes through
/// several tasks, and with more threads most of its way would be from one thread to another.
fn threads_for_connections() -> usize {
    std::thread::available_parallelism().map_or(1, |processors| processors.get().div_ceil(2))
}

async fn serve(
    host: Arc<Host>,
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
    let own = ["localhost", "127.0.0.1", "[::1]"].map(|name| format!("http://{name}:{}", address.port()));
    let config = StreamableHttpServerConfig::default()
        .with_allowed_origins(origins.iter().chain(&own))
        .enforce_origin_validation()
        .with_max_request_body_bytes(door::MAX_REQUEST)
        .with_cancellation_token(stopped.child_token());
    let mut silence = SessionConfig::default();
    silence.keep_alive = Some(LONGEST_SILENCE);
    let mut sessions = LocalSessionManager::default();
    sessions.session_config = silence;
    let sessions = Arc::new(sessions);
    let service = StreamableHttpService::new(
        {
            let host = host.clone();
            move || Ok(SkillServer::new(host.clone(), Seat::guest()))
        },
        sessions.clone(),
        config,
    );
    let connections = Connections::default();
    let sweeping = tokio::spawn({
        let (host, connections) = (host.clone(), connections.clone());
        async move { tokio::join!(sweep_handles(&host), end_deserted(&sessions, &connections)) }
    });
    let router = Router::new()
        .nest_service("/mcp", service)
        .layer(middleware::from_fn(door::take_whole))
        .layer(middleware::from_fn_with_state(connections, Connections::watch));
    tokio::select! {
        () = door::serve(listener, router, &stopped) => {}
        () = async { stopped.cancelled().await; tokio::time::sleep(LAST_ANSWERS).await } => {}
    }
    sweeping.abort();
    host.handles.sweep(Which::All).await;
    host.end_sessions().await;
    Ok(())
}

async fn sweep_handles(host: &Host) {
    loop {
        tokio::time::sleep(SWEEP).await;
        host.handles.sweep(Which::Idle).await;
    }
}

async fn end_deserted(sessions: &LocalSessionManager, connections: &Connections) {
    loop {
        tokio::time::sleep(LOOK).await;
        for id in connections.deserted() {
            if let Err(error) = sessions.close_session(&id.as_str().into()).await {
                tracing::warn!(session = %id, "the session of a client that is gone cannot be closed: {error}");
            }
        }
    }
}
