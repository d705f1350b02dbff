//! The server: from its address to its end.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use skillbox_repository::{WatchError, WatchHandle};
use skillbox_runtime::{AgentOptions, ChangesEnter, RunError, Runtime};
use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::App;
use crate::connection;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::openapi::{Door, document, readable};
use crate::routes::{router, tables};
use crate::runs::Gate;
use crate::tenant::Tenants;
use crate::token::TokenHash;

/// How often sessions that nobody uses are looked for.
const SWEEP: Duration = Duration::from_secs(600);
/// How long the last answers may take once the last run is over.
const LAST_ANSWERS: Duration = Duration::from_secs(2);
/// Connections that the kernel keeps before they are accepted.
const BACKLOG: u32 = 4_096;
/// After a connection could not be accepted, most often because there are no descriptors left.
const BREATH: Duration = Duration::from_millis(50);

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Anybody who can reach the address could run scripts.
    #[error("{0} can be reached from other machines, and no token is configured")]
    NoTokens(SocketAddr),
    /// The address cannot be had.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The threads or the signals that a server needs are not to be had.
    #[error("the server cannot start")]
    Start(#[source] io::Error),
    /// What former servers left cannot be removed.
    #[error("the sessions of servers that are gone cannot be removed")]
    LeftBehind(#[source] RunError),
    /// Changes of the skills would pass unseen.
    #[error("the skills cannot be watched")]
    Watch(#[from] WatchError),
}

/// A server that has not begun.
#[derive(Debug)]
pub struct Server {
    app: Arc<App>,
    router: Router,
    _watch: Mutex<WatchHandle>,
}

impl Server {
    /// Prepares to serve those who have one of the tokens; without any, programs of this machine.
    pub fn new(
        runtime: Arc<Runtime>,
        mut options: AgentOptions,
        tokens: Vec<TokenHash>,
        limits: Limits,
    ) -> Result<Self, ServeError> {
        options.session = None;
        // Requests know no turns of each other: what the watch has seen is there with the next one.
        options.changes = ChangesEnter::EveryCall;
        let watch = runtime.repository().watch()?;
        let door = if tokens.is_empty() { Door::Open } else { Door::Tokens };
        let tables = tables();
        let description = document(&tables.everybody, &tables.known, door);
        let app = Arc::new(App {
            tenants: Tenants::new(runtime.clone(), tokens),
            runtime,
            options,
            gate: Gate::new(limits.runs, limits.queued),
            uploads: Arc::new(Semaphore::new(Limits::UPLOADS)),
            metrics: Metrics::default(),
            stopping: CancellationToken::new(),
            killing: CancellationToken::new(),
            work: TaskTracker::new(),
            openapi: description.to_string().into(),
            docs: readable(&description).into(),
            limits,
        });
        for tenant in app.tenants.all() {
            tenant
                .runtime
                .remove_ownerless_sessions()
                .map_err(ServeError::LeftBehind)?;
        }
        Ok(Self {
            router: router(tables, &app),
            app,
            _watch: Mutex::new(watch),
        })
    }

    /// Serves on an address until a signal comes; `ready` is told where. Then runs have their time to end, and what
    /// still goes on after it is killed.
    pub fn serve(self, address: SocketAddr, ready: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
        if !address.ip().is_loopback() && matches!(self.app.tenants, Tenants::Local(_)) {
            return Err(ServeError::NoTokens(address));
        }
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder
            .enable_all()
            .worker_threads(threads_for_connections())
            .max_blocking_threads(self.app.limits.runs + Limits::UPLOADS + 64);
        let threads = builder.build().map_err(ServeError::Start)?;
        let served = threads.block_on(self.listen(address, ready));
        threads.shutdown_background();
        served
    }

    async fn listen(self, address: SocketAddr, ready: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
        stop_on_signal(self.app.stopping.clone()).map_err(ServeError::Start)?;
        let listener = bind(address).map_err(|source| ServeError::Listen { address, source })?;
        ready(listener.local_addr().map_err(ServeError::Start)?);
        let sweeping = tokio::spawn(sweep(self.app.clone()));
        let connections = TaskTracker::new();
        tokio::select! {
            () = accept(&self.app, &self.router, listener, &connections) => {}
            () = self.app.stopping.cancelled() => {}
        }
        sweeping.abort();
        connections.close();
        end(&self.app, &connections).await;
        Ok(())
    }
}

/// Half of the processors: serving is little work, and what is served needs the others. Each thread more is one more
/// that is woken, for nothing, when an answer is ready.
fn threads_for_connections() -> usize {
    std::thread::available_parallelism().map_or(1, |processors| processors.get().div_ceil(2))
}

/// A crowd that comes at once waits in the kernel's queue, instead of being told nothing and trying again.
fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

async fn accept(app: &Arc<App>, router: &Router, listener: TcpListener, connections: &TaskTracker) {
    let places = Arc::new(Semaphore::new(app.limits.connections.max(1)));
    loop {
        // Beyond the limit clients wait where the kernel keeps them, and cost us nothing.
        let Ok(place) = places.clone().acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let guest = connection::Guest::new(app.clone(), place);
                connections.spawn(connection::talk(guest, router.clone(), stream));
            }
            Err(error) => {
                tracing::warn!("a connection cannot be accepted: {error}");
                tokio::time::sleep(BREATH).await;
            }
        }
    }
}

/// The end, in order: runs finish or are killed, their answers go out, and nobody waits for anybody else.
async fn end(app: &App, connections: &TaskTracker) {
    app.work.close();
    if tokio::time::timeout(app.limits.grace, app.work.wait()).await.is_err() {
        app.killing.cancel();
        for tenant in app.tenants.all() {
            tenant.runs.all().iter().for_each(|run| run.cancel());
        }
        if tokio::time::timeout(Limits::LAST_RUNS, app.work.wait()).await.is_err() {
            tracing::error!("runs are still going on; they die with the server");
        }
    }
    if tokio::time::timeout(LAST_ANSWERS, connections.wait()).await.is_err() {
        tracing::info!("{} connections are cut", connections.len());
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

/// Removes what nobody uses any more, now and then.
async fn sweep(app: Arc<App>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let app = app.clone();
        let swept = tokio::task::spawn_blocking(move || {
            for tenant in app.tenants.all() {
                if let Err(error) = tenant.runtime.collect_garbage(app.limits.session_idle) {
                    tracing::warn!(tenant = tenant.label(), "something that nobody uses stays: {error}");
                }
            }
        });
        if let Err(error) = swept.await {
            tracing::error!("looking for what nobody uses failed: {error}");
        }
    }
}
