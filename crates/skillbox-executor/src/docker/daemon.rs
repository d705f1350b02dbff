//! The daemon, spoken to on a thread of its own.

use std::future::Future;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::errors::Error;
use bollard::models::SystemInfo;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::DockerError;

/// The oldest interface that has everything a run asks for: Docker 19.03.
const OLDEST_API: (usize, usize) = (1, 40);
const OLDEST_API_TEXT: &str = "1.40";
/// The longest that anything but a build may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// A daemon that is there answers its first question much faster.
const FIRST_ANSWER: Duration = Duration::from_secs(10);

/// A daemon that answers.
pub(super) struct Daemon {
    docker: Docker,
    handle: Handle,
    host: String,
    info: SystemInfo,
    version: String,
    /// Ends the thread when it is dropped.
    _stop: oneshot::Sender<()>,
    chores: std::sync::Arc<Chores>,
}

/// Work in the background that somebody may want to see finished.
#[derive(Default)]
struct Chores {
    open: Mutex<usize>,
    changed: Condvar,
}

impl Daemon {
    /// Connects, agrees on a version of the interface, and asks what the daemon can do.
    pub(super) fn connect(host: &str) -> Result<Self, DockerError> {
        let (send, receive) = std::sync::mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let address = host.to_owned();
        std::thread::Builder::new()
            .name("docker".to_owned())
            .spawn(move || serve(&address, &send, stopped))
            .map_err(DockerError::io("start a thread"))?;
        let (docker, handle) = receive.recv().unwrap_or_else(|_| {
            Err(DockerError::TooSlow {
                action: "be connected to",
            })
        })?;
        let mut daemon = Self {
            docker,
            handle,
            host: host.to_owned(),
            info: SystemInfo::default(),
            version: String::new(),
            _stop: stop,
            chores: std::sync::Arc::default(),
        };
        daemon.docker = daemon.ask_within(FIRST_ANSWER, "answer", |docker| docker.negotiate_version())?;
        let api = daemon.docker.client_version();
        daemon.version = format!("{}.{}", api.major_version, api.minor_version);
        if (api.major_version, api.minor_version) < OLDEST_API {
            return Err(DockerError::Outdated {
                host: host.to_owned(),
                found: daemon.version,
                needed: OLDEST_API_TEXT,
            });
        }
        daemon.info = daemon.ask("describe itself", |docker| async move { docker.info().await })?;
        Ok(daemon)
    }

    /// Where it is.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// What it says of itself.
    pub(super) fn info(&self) -> &SystemInfo {
        &self.info
    }

    /// The version of the interface that both sides speak.
    pub(super) fn api_version(&self) -> &str {
        &self.version
    }

    /// The client, for work in the background.
    pub(super) fn client(&self) -> Docker {
        self.docker.clone()
    }

    /// Asks something and waits for the answer.
    pub(super) fn ask<T, F>(&self, action: &'static str, question: impl FnOnce(Docker) -> F) -> Result<T, DockerError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        self.ask_within(PATIENCE, action, question)
    }

    /// The same with a patience of its own.
    pub(super) fn ask_within<T, F>(
        &self,
        patience: Duration,
        action: &'static str,
        question: impl FnOnce(Docker) -> F,
    ) -> Result<T, DockerError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let (send, receive) = std::sync::mpsc::sync_channel(1);
        let answer = question(self.docker.clone());
        self.handle.spawn(async move {
            // Nobody waits any more: the answer is of no use.
            let _late = send.send(tokio::time::timeout(patience, answer).await);
        });
        match receive.recv() {
            Ok(Ok(answer)) => answer.map_err(|error| DockerError::of_api(action, &self.host, "", error)),
            Ok(Err(_)) | Err(_) => Err(DockerError::TooSlow { action }),
        }
    }

    /// Does something in the background; [`Self::wait_for_chores`] waits for it.
    pub(super) fn chore(&self, work: impl Future<Output = ()> + Send + 'static) {
        let chores = self.chores.clone();
        *chores.open.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.handle.spawn(async move {
            work.await;
            *chores.open.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
            chores.changed.notify_all();
        });
    }

    /// Has something made that must not stay half made: what comes too late is given to `undo`.
    pub(super) fn make<T, F, U>(
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
        // Whoever waits has gone, or takes it: nothing is left in between but a line that ends, and its container.
        let (send, receive) = std::sync::mpsc::sync_channel(1);
        self.chore(async move {
            if let Err(std::sync::mpsc::SendError(Ok(late))) = send.send(work.await) {
                undo(late).await;
            }
        });
        match receive.recv_timeout(PATIENCE) {
            Ok(made) => made.map_err(|error| DockerError::of_api(action, &self.host, "", error)),
            Err(_) => Err(DockerError::TooSlow { action }),
        }
    }

    /// Starts something that goes on by itself.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(work);
    }

    /// Waits until the background is quiet, at most so long.
    pub(super) fn wait_for_chores(&self, at_most: Duration) {
        let end = Instant::now() + at_most;
        let mut open = self.chores.open.lock().unwrap_or_else(PoisonError::into_inner);
        while *open > 0 {
            let Some(left) = end.checked_duration_since(Instant::now()) else {
                return;
            };
            let waited = self.chores.changed.wait_timeout(open, left);
            (open, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl std::fmt::Debug for Daemon {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (host, version) = (&self.host, &self.version);
        f.debug_struct("Daemon")
            .field("host", host)
            .field("api", version)
            .finish_non_exhaustive()
    }
}

type Connected = Result<(Docker, Handle), DockerError>;

/// The thread: everything that talks to the daemon runs here.
fn serve(host: &str, connected: &std::sync::mpsc::Sender<Connected>, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            let _gone = connected.send(Err(DockerError::io("start an event loop")(error)));
            return;
        }
    };
    let docker = {
        let _inside = runtime.enter();
        connect(host)
    };
    let is_connected = docker.is_ok();
    let _gone = connected.send(docker.map(|docker| (docker, runtime.handle().clone())));
    if is_connected {
        let _ended = runtime.block_on(stopped);
    }
}

fn connect(host: &str) -> Result<Docker, DockerError> {
    let seconds = PATIENCE.as_secs();
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
