//! The connection to the queue, for synchronous callers.

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use async_nats::connection::State;
use async_nats::jetstream::{self, context::ContextBuilder};
use async_nats::{Client, ConnectErrorKind, ConnectOptions, ServerAddr};

use super::error::QueueError;

/// How long a server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long servers are tried again before the queue counts as unreachable.
const UNREACHABLE_AFTER: Duration = Duration::from_secs(6);
const RETRY_INTERVAL: Duration = Duration::from_millis(250);
/// How long one request may take. The election of a new leader takes several seconds.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a request is repeated while the servers elect a leader.
const REQUEST_DEADLINE: Duration = Duration::from_secs(30);
/// Messages that may wait for their acknowledgement by the servers.
const MAX_UNACKNOWLEDGED: usize = 512;

/// Where the queue is and how to connect to it.
#[derive(Clone, Debug, Default)]
pub struct QueueOptions {
    /// The addresses of servers, separated by commas.
    pub address: String,
    /// The file with the credentials of a user: a JWT and its key.
    pub credentials: Option<PathBuf>,
    /// The certificates of the authorities that are trusted for servers, besides those of the system.
    pub authorities: Option<PathBuf>,
    /// The certificate and the key of this client.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// A connection to the queue. It reconnects by itself.
pub struct Queue {
    runtime: tokio::runtime::Runtime,
    pub(super) client: Client,
    pub(super) jetstream: jetstream::Context,
    address: String,
}

impl Queue {
    /// Connects, or fails within some seconds.
    pub fn connect(options: &QueueOptions) -> Result<Self, QueueError> {
        let servers = parse_address(&options.address)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("queue")
            .enable_all()
            .build()
            .map_err(|error| setup("queue", format!("cannot start its threads: {error}")))?;
        let client = runtime.block_on(connect(&servers, options))?;
        // The context starts a task.
        let entered = runtime.enter();
        let jetstream = ContextBuilder::new()
            .timeout(REQUEST_TIMEOUT)
            .ack_timeout(REQUEST_TIMEOUT)
            .max_ack_inflight(MAX_UNACKNOWLEDGED)
            .build(client.clone());
        drop(entered);
        Ok(Self {
            runtime,
            client,
            jetstream,
            address: options.address.clone(),
        })
    }

    /// Waits for the end of asynchronous work.
    pub(super) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Starts asynchronous work.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(work);
    }

    /// Sends what waits to be sent. Without a connection that would wait for ever, so it fails after a while.
    pub(super) async fn flush(&self, action: &'static str) -> Result<(), QueueError> {
        match tokio::time::timeout(REQUEST_TIMEOUT, self.client.flush()).await {
            Ok(flushed) => flushed.map_err(|error| QueueError::request(action, &error)),
            Err(elapsed) => Err(QueueError::request(action, &elapsed)),
        }
    }

    /// Whether there is a connection now.
    pub(super) fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Queue").field(&self.address).finish()
    }
}

/// Repeats a request until it succeeds, until its error is final, or until the deadline: an election of a leader takes
/// longer than one request.
pub(super) async fn repeat<T, E: std::error::Error + 'static, F: Future<Output = Result<T, E>>>(
    action: &'static str,
    is_final: impl Fn(&E) -> bool,
    mut request: impl FnMut() -> F,
) -> Result<T, QueueError> {
    let deadline = Instant::now() + REQUEST_DEADLINE;
    loop {
        match request().await {
            Ok(answer) => return Ok(answer),
            Err(error) if is_final(&error) || Instant::now() > deadline => {
                return Err(QueueError::request(action, &error));
            }
            Err(error) => tracing::debug!(%error, action, "a request to the queue is repeated"),
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

fn setup(field: &'static str, message: String) -> QueueError {
    QueueError::Setup { field, message }
}

fn parse_address(text: &str) -> Result<Vec<ServerAddr>, QueueError> {
    let mut servers = Vec::new();
    for part in text.split(',').map(str::trim) {
        // A part with credentials is not shown.
        if part.contains('@') {
            let message = "credentials in the address are refused, because others can see command lines; use a \
                           credentials file or a certificate";
            return Err(setup("queue", message.to_owned()));
        }
        let host = part.split_once("://").map_or(part, |(_, host)| host);
        if host.is_empty() || host.starts_with(':') {
            return Err(setup("queue", format!("{part:?} names no host")));
        }
        let server: ServerAddr = part
            .parse()
            .map_err(|error| setup("queue", format!("{part:?} is not an address: {error}")))?;
        if !matches!(server.scheme(), "nats" | "tls") {
            return Err(setup("queue", format!("{part:?}: use nats:// or tls://")));
        }
        servers.push(server);
    }
    Ok(servers)
}

async fn connect(servers: &[ServerAddr], options: &QueueOptions) -> Result<Client, QueueError> {
    let deadline = Instant::now() + UNREACHABLE_AFTER;
    loop {
        let error = match connect_options(options).await?.connect(servers).await {
            Ok(client) => return Ok(client),
            Err(error) => error,
        };
        let is_final = matches!(
            error.kind(),
            ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Tls
        );
        if is_final || Instant::now() > deadline {
            return Err(QueueError::Unreachable {
                address: options.address.clone(),
                timeout: UNREACHABLE_AFTER,
                message: skillbox_model::with_causes(&error),
            });
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

async fn connect_options(options: &QueueOptions) -> Result<ConnectOptions, QueueError> {
    let mut connect = ConnectOptions::new()
        .name("skillbox")
        .connection_timeout(CONNECT_TIMEOUT)
        .request_timeout(Some(REQUEST_TIMEOUT))
        .max_reconnects(None)
        .ping_interval(Duration::from_secs(10));
    if let Some(path) = &options.credentials {
        connect = connect
            .credentials_file(path)
            .await
            .map_err(|error| setup("queue-creds", format!("cannot read {}: {error}", path.display())))?;
    }
    if let Some(path) = &options.authorities {
        connect = connect.add_root_certificates(path.clone());
    }
    if let Some((certificate, key)) = &options.certificate {
        connect = connect.add_client_certificate(certificate.clone(), key.clone());
    }
    Ok(connect)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_no_credentials() {
        for good in ["nats://a:4222", "tls://a:1,tls://b:2", "localhost"] {
            assert!(parse_address(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "nats://",
            "nats://:4222",
            "nats://a,",
            "http://a",
            "ws://a:1",
            "nats://user:SECRET@a",
            "nats://TOKEN@a:1",
        ] {
            let error = parse_address(bad).unwrap_err().to_string();
            assert!(!error.contains("SECRET") && !error.contains("TOKEN"), "{error}");
        }
    }
}
