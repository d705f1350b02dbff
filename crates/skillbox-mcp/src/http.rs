//! Many clients over streamable HTTP, at `/mcp`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::serve::ListenerExt;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use crate::host::Host;
use crate::seat::{Seat, Which};
use crate::server::SkillServer;
use crate::stdio::{ServeError, stop_on_signal};

/// A session of the older revisions that says nothing for so long is over; the longest run is shorter.
const LONGEST_SILENCE: Duration = Duration::from_secs(70 * 60);
/// How often sessions that nobody uses are looked for.
const SWEEP: Duration = Duration::from_secs(30);
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
    let runtime = builder.enable_all().build().map_err(ServeError::Start)?;
    let served = runtime.block_on(serve(host, address, origins, ready));
    runtime.shutdown_background();
    served
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
        .with_cancellation_token(stopped.child_token());
    let mut silence = SessionConfig::default();
    silence.keep_alive = Some(LONGEST_SILENCE);
    let mut sessions = LocalSessionManager::default();
    sessions.session_config = silence;
    let service = StreamableHttpService::new(
        {
            let host = host.clone();
            move || Ok(SkillServer::new(host.clone(), Seat::guest()))
        },
        Arc::new(sessions),
        config,
    );
    let sweeping = tokio::spawn({
        let host = host.clone();
        async move {
            loop {
                tokio::time::sleep(SWEEP).await;
                host.handles.sweep(Which::Idle).await;
            }
        }
    });
    let router = Router::new().nest_service("/mcp", service);
    // An answer's last piece must not wait until the client has acknowledged the one before.
    let listener = listener.tap_io(|stream| {
        let _gone_already = stream.set_nodelay(true);
    });
    let serving = axum::serve(listener, router).with_graceful_shutdown(stopped.clone().cancelled_owned());
    tokio::select! {
        served = async { serving.await } => served.map_err(ServeError::Start)?,
        () = async { stopped.cancelled().await; tokio::time::sleep(LAST_ANSWERS).await } => {}
    }
    sweeping.abort();
    host.handles.sweep(Which::All).await;
    host.end_sessions().await;
    Ok(())
}
