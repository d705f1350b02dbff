//! Serves one client on standard input and output, with one session for the process.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::io::stdio_pipes;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::server::SkillServer;
use crate::server_state::ServerState;
use crate::session_resolver::SessionResolver;

/// Time for the last calls to end by themselves after the client has closed its input. Clients wait two seconds before
/// they kill a server.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// The reason why a server could not start or ended early.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The threads or signal handlers of the server cannot be created.
    #[error("the server cannot start")]
    Start(#[source] io::Error),
    /// The session of the client cannot be created.
    #[error("the session cannot be opened: {0}")]
    Session(String),
    /// Every machine that can reach the address could run scripts.
    #[error("{0} is reachable from other machines, and clients are not authenticated")]
    NotLoopback(SocketAddr),
    /// The address is not available.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// The first message of the client violates the protocol.
    #[error("the first message of the client violates the protocol")]
    Client(#[source] Box<ServerInitializeError>),
}

/// Serves the client on standard input and output until it disconnects or a signal arrives, then removes its session.
pub fn serve_stdio(server: Arc<ServerState>) -> Result<(), ServeError> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(ServeError::Start)?;
    let served = runtime.block_on(serve(server));
    // A thread may still wait for input that never arrives.
    runtime.shutdown_background();
    served
}

async fn serve(server: Arc<ServerState>) -> Result<(), ServeError> {
    let stopped = stop_on_signal().map_err(ServeError::Start)?;
    let session = server
        .create_session()
        .await
        .map_err(|error| ServeError::Session(error.message.into_owned()))?;
    let input_closed = session.input_closed().clone();
    tokio::spawn({
        let (input_closed, stopped, ended) = (input_closed.clone(), stopped.clone(), session.ended().clone());
        async move {
            tokio::select! {
                () = stopped.cancelled() => {}
                () = async { input_closed.cancelled().await; tokio::time::sleep(SHUTDOWN_TIMEOUT).await } => {}
            }
            ended.cancel();
        }
    });
    let resolver = SessionResolver::Stdio(session.clone());
    let served = serve_client(SkillServer::new(server, resolver), input_closed, stopped).await;
    session.end().await;
    served
}

async fn serve_client(
    server: SkillServer,
    input_closed: CancellationToken,
    stopped: CancellationToken,
) -> Result<(), ServeError> {
    let (reader, writer) = stdio_pipes();
    let reader = EofNotifier {
        reader,
        end: input_closed,
    };
    match server.serve_with_ct((reader, writer), stopped).await {
        Ok(running) => {
            // The reason makes no difference to the shutdown.
            let _reason = running.waiting().await;
            Ok(())
        }
        // The client disconnected before its first message, or a signal arrived first.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
        Err(error) => Err(ServeError::Client(Box::new(error))),
    }
}

pub(crate) fn stop_on_signal() -> io::Result<CancellationToken> {
    let stopped = CancellationToken::new();
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::spawn({
        let stopped = stopped.clone();
        async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            stopped.cancel();
        }
    });
    Ok(stopped)
}

/// A reader that signals the end of input at once. The protocol's own loop first waits for pending results, and with them
/// for runs whose client has disconnected.
struct EofNotifier<R> {
    reader: R,
    end: CancellationToken,
}

impl<R: AsyncRead + Unpin> AsyncRead for EofNotifier<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.reader).poll_read(cx, buffer);
        let is_end = match &polled {
            Poll::Ready(Ok(())) => buffer.filled().len() == before && buffer.remaining() > 0,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        if is_end {
            self.end.cancel();
        }
        polled
    }
}
