//! The server: starts, accepts connections, shuts down.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use skillbox_repository::{WatchError, WatchHandle};
use skillbox_runtime::{AgentOptions, RefreshPolicy, RunError, Runtime};
use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::App;
use crate::connection;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::openapi::{Authentication, openapi_document, render_page};
use crate::routes::{route_tables, router};
use crate::runs::RunQueue;
use crate::tenant::Tenants;
use crate::token::TokenHash;

/// How often idle sessions and unreferenced content are removed.
const GARBAGE_INTERVAL: Duration = Duration::from_secs(600);
/// How long the last responses may take after the last run has ended.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);
/// The number of connections that the kernel queues before they are accepted.
const LISTEN_BACKLOG: u32 = 4_096;
/// The delay after a failed accept, which usually means that file descriptors are exhausted.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Without tokens, any host that reaches the address could run scripts.
    #[error("{0} is reachable from other hosts, but no token is configured")]
    NoTokens(SocketAddr),
    /// The address cannot be used.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// Threads or signal handlers cannot be created.
    #[error("cannot start the server")]
    Start(#[source] io::Error),
    /// Sessions that former servers left behind cannot be removed.
    #[error("cannot remove leftover sessions of former servers")]
    Cleanup(#[source] RunError),
    /// Changes of skills cannot be detected.
    #[error("cannot watch the skills for changes")]
    Watch(#[from] WatchError),
}

/// A server that is ready to start.
#[derive(Debug)]
pub struct Server {
    app: Arc<App>,
    router: Router,
    _watch: Mutex<WatchHandle>,
}

impl Server {
    /// Prepares a server for clients with one of the tokens. Without tokens, it accepts only clients on this host.
    pub fn new(
        runtime: Arc<Runtime>,
        mut options: AgentOptions,
        tokens: Vec<TokenHash>,
        limits: Limits,
    ) -> Result<Self, ServeError> {
        options.session = None;
        // HTTP requests are not grouped into turns, so changes on disk apply from the next request on.
        options.refresh = RefreshPolicy::EveryCall;
        let watch = runtime.repository().watch()?;
        let authentication = if tokens.is_empty() {
            Authentication::None
        } else {
            Authentication::BearerToken
        };
        let tables = route_tables();
        let document = openapi_document(&tables.public, &tables.authenticated, authentication);
        let app = Arc::new(App {
            tenants: Tenants::new(runtime.clone(), tokens),
            runtime,
            agent_options: options,
            run_queue: RunQueue::new(limits.max_runs, limits.max_queued),
            upload_permits: Arc::new(Semaphore::new(Limits::MAX_UPLOADS)),
            metrics: Metrics::default(),
            stopping: CancellationToken::new(),
            killing: CancellationToken::new(),
            work: TaskTracker::new(),
            openapi_json: document.to_string().into(),
            openapi_page: render_page(&document).into(),
            limits,
        });
        for tenant in app.tenants.all() {
            tenant.runtime.remove_orphaned_sessions().map_err(ServeError::Cleanup)?;
        }
        Ok(Self {
            router: router(tables, &app),
            app,
            _watch: Mutex::new(watch),
        })
    }

    /// Serves on an address until a signal arrives, and calls `ready` with the bound address. After the signal, runs may
    /// finish within the grace period; then they are killed.
    pub fn serve(self, address: SocketAddr, ready: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
        if !address.ip().is_loopback() && matches!(self.app.tenants, Tenants::Local(_)) {
            return Err(ServeError::NoTokens(address));
        }
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder
            .enable_all()
            .worker_threads(worker_thread_count())
            .max_blocking_threads(self.app.limits.max_runs + Limits::MAX_UPLOADS + 64);
        let tokio_runtime = builder.build().map_err(ServeError::Start)?;
        let result = tokio_runtime.block_on(self.accept_until_shutdown(address, ready));
        tokio_runtime.shutdown_background();
        result
    }

    async fn accept_until_shutdown(
        self,
        address: SocketAddr,
        ready: impl FnOnce(SocketAddr),
    ) -> Result<(), ServeError> {
        stop_on_signal(self.app.stopping.clone()).map_err(ServeError::Start)?;
        let listener = bind(address).map_err(|source| ServeError::Listen { address, source })?;
        ready(listener.local_addr().map_err(ServeError::Start)?);
        let garbage_collection = tokio::spawn(collect_garbage(self.app.clone()));
        let connections = TaskTracker::new();
        tokio::select! {
            () = accept_connections(&self.app, &self.router, listener, &connections) => {}
            () = self.app.stopping.cancelled() => {}
        }
        garbage_collection.abort();
        connections.close();
        shut_down(&self.app, &connections).await;
        Ok(())
    }
}

/// Half of the processors: serving needs little CPU time, and runs need the rest. More threads would only cause more
/// needless wakeups.
fn worker_thread_count() -> usize {
    std::thread::available_parallelism().map_or(1, |processors| processors.get().div_ceil(2))
}

/// Binds with a long backlog, so that a burst of connections waits in the kernel's queue instead of being dropped and
/// retried.
fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(LISTEN_BACKLOG)
}

async fn accept_connections(app: &Arc<App>, router: &Router, listener: TcpListener, connections: &TaskTracker) {
    let permits = Arc::new(Semaphore::new(app.limits.max_connections.max(1)));
    loop {
        // Beyond the limit, clients wait in the kernel's queue.
        let Ok(permit) = permits.clone().acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let guard = connection::ConnectionGuard::new(app.clone(), permit);
                connections.spawn(connection::serve_connection(guard, router.clone(), stream));
            }
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
}

/// Waits for runs to finish, kills the remaining ones, then waits for the last responses.
async fn shut_down(app: &App, connections: &TaskTracker) {
    app.work.close();
    if tokio::time::timeout(app.limits.grace_period, app.work.wait())
        .await
        .is_err()
    {
        app.killing.cancel();
        for tenant in app.tenants.all() {
            tenant.runs.all().iter().for_each(|run| run.cancel());
        }
        if tokio::time::timeout(Limits::KILL_TIMEOUT, app.work.wait())
            .await
            .is_err()
        {
            tracing::error!("some runs did not end; they are killed with the server");
        }
    }
    if tokio::time::timeout(RESPONSE_TIMEOUT, connections.wait())
        .await
        .is_err()
    {
        tracing::info!(
            "closing {} connections before their responses are complete",
            connections.len()
        );
    }
}

fn stop_on_signal(stopping: CancellationToken) -> io::Result<()> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stopping.cancel();
    });
    Ok(())
}

/// Removes idle sessions and unreferenced content periodically.
async fn collect_garbage(app: Arc<App>) {
    loop {
        tokio::time::sleep(GARBAGE_INTERVAL).await;
        let app = app.clone();
        let collected = tokio::task::spawn_blocking(move || {
            for tenant in app.tenants.all() {
                if let Err(error) = tenant.runtime.collect_garbage(app.limits.session_idle_timeout) {
                    tracing::warn!(tenant = tenant.label(), "garbage collection is incomplete: {error}");
                }
            }
        });
        if let Err(error) = collected.await {
            tracing::error!("garbage collection failed: {error}");
        }
    }
}
