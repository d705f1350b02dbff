//! The connection to the Docker daemon, on its own thread.

use std::future::Future;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::errors::Error;
use bollard::models::SystemInfo;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::DockerError;

/// The oldest API version that supports everything a run needs. It is the version of Docker 19.03.
const MIN_API_VERSION: (usize, usize) = (1, 40);
const MIN_API_VERSION_TEXT: &str = "1.40";
/// The timeout of every request except image builds.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// The timeout of the first request. A running daemon answers it much faster.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A connected daemon.
pub(super) struct Daemon {
    docker: Docker,
    handle: Handle,
    host: String,
    info: SystemInfo,
    api_version: String,
    /// Dropping it ends the thread.
    _stop: oneshot::Sender<()>,
    background_tasks: std::sync::Arc<BackgroundTasks>,
}

/// Counts the background tasks, so that a shutdown can wait for them.
#[derive(Default)]
struct BackgroundTasks {
    running: Mutex<usize>,
    changed: Condvar,
}

impl Daemon {
    /// Connects, negotiates the API version, and reads what the daemon supports.
    pub(super) fn connect(host: &str) -> Result<Self, DockerError> {
        let (send, receive) = std::sync::mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let address = host.to_owned();
        std::thread::Builder::new()
            .name("docker".to_owned())
            .spawn(move || run_daemon_thread(&address, &send, stopped))
            .map_err(DockerError::io("start a thread"))?;
        let (docker, handle) = receive.recv().unwrap_or_else(|_| {
            Err(DockerError::Timeout {
                action: "accept a connection",
            })
        })?;
        let mut daemon = Self {
            docker,
            handle,
            host: host.to_owned(),
            info: SystemInfo::default(),
            api_version: String::new(),
            _stop: stop,
            background_tasks: std::sync::Arc::default(),
        };
        daemon.docker =
            daemon.send_request_with_timeout(CONNECT_TIMEOUT, "answer", |docker| docker.negotiate_version())?;
        let api = daemon.docker.client_version();
        daemon.api_version = format!("{}.{}", api.major_version, api.minor_version);
        if (api.major_version, api.minor_version) < MIN_API_VERSION {
            return Err(DockerError::ApiOutdated {
                host: host.to_owned(),
                found: daemon.api_version,
                needed: MIN_API_VERSION_TEXT,
            });
        }
        daemon.info = daemon.send_request("describe itself", |docker| async move { docker.info().await })?;
        Ok(daemon)
    }

    /// The address of the daemon.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// The daemon's description of itself.
    pub(super) fn info(&self) -> &SystemInfo {
        &self.info
    }

    /// The negotiated API version.
    pub(super) fn api_version(&self) -> &str {
        &self.api_version
    }

    /// The client, for background tasks.
    pub(super) fn client(&self) -> Docker {
        self.docker.clone()
    }

    /// Sends a request and waits for the response.
    pub(super) fn send_request<T, F>(
        &self,
        action: &'static str,
        request: impl FnOnce(Docker) -> F,
    ) -> Result<T, DockerError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        self.send_request_with_timeout(REQUEST_TIMEOUT, action, request)
    }

    /// Like `send_request`, with another timeout.
    pub(super) fn send_request_with_timeout<T, F>(
        &self,
        timeout: Duration,
        action: &'static str,
        request: impl FnOnce(Docker) -> F,
    ) -> Result<T, DockerError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let (send, receive) = std::sync::mpsc::sync_channel(1);
        let response = request(self.docker.clone());
        self.handle.spawn(async move {
            // The send fails if the caller has stopped waiting.
            let _unclaimed = send.send(tokio::time::timeout(timeout, response).await);
        });
        match receive.recv() {
            Ok(Ok(response)) => response.map_err(|error| DockerError::from_api_error(action, &self.host, "", error)),
            Ok(Err(_)) | Err(_) => Err(DockerError::Timeout { action }),
        }
    }

    /// Starts a background task. [`Self::wait_for_background_tasks`] waits for it.
    pub(super) fn spawn_background_task(&self, work: impl Future<Output = ()> + Send + 'static) {
        let background_tasks = self.background_tasks.clone();
        *background_tasks.running.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.handle.spawn(async move {
            work.await;
            *background_tasks.running.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
            background_tasks.changed.notify_all();
        });
    }

    /// Creates a resource that must not be leaked: one that is created only after the timeout is passed to `undo`.
    pub(super) fn create_or_undo<T, F, U>(
        &self,
        action: &'static str,
        work: F,
        undo: impl FnOnce(T) -> U + Send + 'static,
    ) -> Result<T, DockerError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
        U: Future<Output = ()> + Send + 'static,
    {
        // Either the caller takes the value, or the channel is closed and `undo` runs.
        let (send, receive) = std::sync::mpsc::sync_channel(1);
        self.spawn_background_task(async move {
            if let Err(std::sync::mpsc::SendError(Ok(unclaimed))) = send.send(work.await) {
                undo(unclaimed).await;
            }
        });
        match receive.recv_timeout(REQUEST_TIMEOUT) {
            Ok(created) => created.map_err(|error| DockerError::from_api_error(action, &self.host, "", error)),
            Err(_) => Err(DockerError::Timeout { action }),
        }
    }

    /// Starts a task that no shutdown waits for.
    pub(super) fn spawn_detached(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(work);
    }

    /// Waits until all background tasks have ended, at most for `timeout`.
    pub(super) fn wait_for_background_tasks(&self, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        let mut running = self
            .background_tasks
            .running
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        while *running > 0 {
            let Some(remaining) = deadline.checked_duration_since(Instant::now()) else {
                return;
            };
            let waited = self.background_tasks.changed.wait_timeout(running, remaining);
            (running, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl std::fmt::Debug for Daemon {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (host, version) = (&self.host, &self.api_version);
        f.debug_struct("Daemon")
            .field("host", host)
            .field("api", version)
            .finish_non_exhaustive()
    }
}

type ConnectResult = Result<(Docker, Handle), DockerError>;

/// The thread that runs all communication with the daemon.
fn run_daemon_thread(host: &str, connected: &std::sync::mpsc::Sender<ConnectResult>, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            let _receiver_dropped = connected.send(Err(DockerError::io("start an event loop")(error)));
            return;
        }
    };
    let docker = {
        let _guard = runtime.enter();
        connect(host)
    };
    let is_connected = docker.is_ok();
    let _receiver_dropped = connected.send(docker.map(|docker| (docker, runtime.handle().clone())));
    if is_connected {
        let _ended = runtime.block_on(stopped);
    }
}

fn connect(host: &str) -> Result<Docker, DockerError> {
    let seconds = REQUEST_TIMEOUT.as_secs();
    let connected = if host.starts_with("unix://") {
        Docker::connect_with_unix(host, seconds, bollard::API_DEFAULT_VERSION)
    } else if host.starts_with("tcp://") || host.starts_with("http://") {
        Docker::connect_with_http(host, seconds, bollard::API_DEFAULT_VERSION)
    } else {
        return Err(DockerError::Address { host: host.to_owned() });
    };
    connected.map_err(|source| DockerError::Unreachable {
        host: host.to_owned(),
        source: Box::new(source),
    })
}
