//! The server: starts, accepts connections, shuts down.

use std::io;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use axum::Router;
use skillbox_repository::{WatchError, WatchHandle};
use skillbox_runtime::{AgentOptions, RunError, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::{App, Reloadable};
use crate::body_budget::BodyBudget;
use crate::connection;
use crate::limits::Limits;
use crate::listen::{ListenAddress, Listener};
use crate::metrics::Metrics;
use crate::openapi::{Authentication, openapi_document, render_page};
use crate::reload::{ReadSettings, ReloadedSettings, reload_on_signal};
use crate::routes::{route_tables, router};
use crate::runs::RunQueue;
use crate::tenant::Tenants;
use crate::token::TokenHash;

/// How often idle sessions and unreferenced content are removed.
const GARBAGE_INTERVAL: Duration = Duration::from_secs(600);
/// How long the last responses may take after the last run has ended.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);
/// The number of threads for runs that a reload may make use of. They are created when they are needed.
const MIN_RUN_THREADS: usize = 512;
/// The delay after a failed accept, which usually means that file descriptors are exhausted.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Without tokens, any host that reaches the address could run scripts.
    #[error("{0} is reachable from other hosts, but no token is configured")]
    NoTokens(ListenAddress),
    /// The address cannot be used.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: ListenAddress,
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
pub struct Server {
    app: Arc<App>,
    router: Router,
    read_settings: Option<ReadSettings>,
    _watch: Mutex<WatchHandle>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("app", &self.app).finish_non_exhaustive()
    }
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
        let watch = runtime.repository().watch()?;
        let authentication = if tokens.is_empty() {
            Authentication::None
        } else {
            Authentication::BearerToken
        };
        let tables = route_tables();
        let document = openapi_document(&tables.public, &tables.authenticated, authentication);
        let body_budget = BodyBudget::new(limits.max_buffered_bytes);
        let app = Arc::new(App {
            tenants: Reloadable::new(Tenants::new(&runtime, tokens, &body_budget, limits.results_ttl, &[])),
            body_budget,
            served_address: OnceLock::new(),
            runtime,
            agent_options: options,
            run_queue: RunQueue::new(limits.max_runs, limits.max_queued),
            upload_permits: Arc::new(Semaphore::new(Limits::MAX_UPLOADS)),
            metrics: Metrics::default(),
            stopping: CancellationToken::new(),
            drained: CancellationToken::new(),
            grace_period_over: CancellationToken::new(),
            work: TaskTracker::new(),
            openapi_json: document.to_string().into(),
            openapi_page: render_page(&document).into(),
            limits: Reloadable::new(limits),
        });
        let counted = Arc::downgrade(&app);
        app.runtime.observe_runs(move |run| {
            if let Some(app) = counted.upgrade() {
                app.metrics.runs.record(run);
            }
        });
        for tenant in app.tenants.get().all() {
            tenant.runtime.remove_orphaned_sessions().map_err(ServeError::Cleanup)?;
        }
        Ok(Self {
            router: router(tables, &app),
            app,
            read_settings: None,
            _watch: Mutex::new(watch),
        })
    }

    /// Reads the settings again at each SIGHUP.
    pub fn with_reload(
        mut self,
        read_settings: impl Fn() -> Result<ReloadedSettings, String> + Send + Sync + 'static,
    ) -> Self {
        self.read_settings = Some(Box::new(read_settings));
        self
    }

    /// Serves on an address until a signal arrives, and calls `ready` with the bound address. After the signal, runs may
    /// finish within the grace period; then they are killed.
    pub fn serve(self, address: ListenAddress, ready: impl FnOnce(&ListenAddress)) -> Result<(), ServeError> {
        if !address.is_local() && matches!(*self.app.tenants.get(), Tenants::Local(_)) {
            return Err(ServeError::NoTokens(address));
        }
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder
            .enable_all()
            .worker_threads(worker_thread_count())
            .max_blocking_threads(self.app.limits.get().max_runs.max(MIN_RUN_THREADS) + Limits::MAX_UPLOADS + 64);
        let tokio_runtime = builder.build().map_err(ServeError::Start)?;
        let result = tokio_runtime.block_on(self.accept_until_shutdown(address, ready));
        tokio_runtime.shutdown_background();
        result
    }

    async fn accept_until_shutdown(
        mut self,
        address: ListenAddress,
        ready: impl FnOnce(&ListenAddress),
    ) -> Result<(), ServeError> {
        stop_on_signal(self.app.stopping.clone()).map_err(ServeError::Start)?;
        reload_on_signal(self.app.clone(), self.read_settings.take()).map_err(ServeError::Start)?;
        let listener = Listener::bind(&address).map_err(|source| ServeError::Listen { address, source })?;
        let bound = listener.address().map_err(ServeError::Start)?;
        ready(&bound);
        let _is_set_once = self.app.served_address.set(bound);
        let garbage_collection = tokio::spawn(collect_garbage(self.app.clone()));
        let connections = TaskTracker::new();
        {
            let accept = accept_connections(&self.app, &self.router, listener, &connections);
            tokio::pin!(accept);
            tokio::select! {
                () = &mut accept => {}
                () = self.app.stopping.cancelled() => {}
            }
            garbage_collection.abort();
            // Clients are still answered: they can fetch results, and see from `/readyz` that no new work starts.
            tokio::select! {
                () = &mut accept => {}
                () = drain(&self.app) => {}
            }
        }
        self.app.drained.cancel();
        connections.close();
        close_connections(&connections).await;
        tracing::info!("stopped");
        Ok(())
    }
}

/// Half of the processors: serving needs little CPU time, and runs need the rest. More threads would only cause more
/// needless wakeups.
fn worker_thread_count() -> usize {
    std::thread::available_parallelism().map_or(1, |processors| processors.get().div_ceil(2))
}

async fn accept_connections(app: &Arc<App>, router: &Router, listener: Listener, connections: &TaskTracker) {
    let permits = Arc::new(Semaphore::new(app.limits.get().max_connections.max(1)));
    loop {
        // Beyond the limit, clients wait in the kernel's queue.
        let Ok(permit) = permits.clone().acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok(stream) => {
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

/// Waits for runs to finish, and kills the remaining ones after the grace period.
async fn drain(app: &App) {
    let grace_period = app.limits.get().grace_period;
    let (running, queued) = app.run_queue.running_and_waiting();
    tracing::info!(running, queued, grace_s = grace_period.as_secs(), "draining");
    app.work.close();
    if tokio::time::timeout(grace_period, app.work.wait()).await.is_ok() {
        return;
    }
    let (running, queued) = app.run_queue.running_and_waiting();
    tracing::warn!(running, queued, "runs are killed: the grace period is over");
    app.grace_period_over.cancel();
    for tenant in app.tenants.get().all() {
        tenant.runs.all().iter().for_each(|run| run.cancel());
    }
    if tokio::time::timeout(Limits::KILL_TIMEOUT, app.work.wait())
        .await
        .is_err()
    {
        tracing::error!("some runs did not end; they are killed with the server");
    }
}

/// Waits for the last responses.
async fn close_connections(connections: &TaskTracker) {
    if tokio::time::timeout(RESPONSE_TIMEOUT, connections.wait())
        .await
        .is_err()
    {
        tracing::info!(
            connections = connections.len(),
            "connections are closed before their responses are complete"
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
            for tenant in app.tenants.get().all() {
                if let Err(error) = tenant.runtime.collect_garbage(app.limits.get().session_idle_timeout) {
                    tracing::warn!(tenant = tenant.label(), "garbage collection is incomplete: {error}");
                }
            }
        });
        if let Err(error) = collected.await {
            tracing::error!("garbage collection failed: {error}");
        }
    }
}
