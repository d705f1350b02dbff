//! One client on standard input and output: the process is its session.

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

use crate::host::Host;
use crate::seat::Seat;
use crate::server::SkillServer;
use crate::session::ClientSession;

/// What was asked for last may still end by itself for so long once the client has closed its side. Clients wait two
/// seconds before they kill a server.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// Why a server ended that should have gone on.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The threads or the signals that a server needs are not to be had.
    #[error("the server cannot start")]
    Start(#[source] io::Error),
    /// The session of the client cannot be made.
    #[error("the session cannot be opened: {0}")]
    Session(String),
    /// Anybody who can reach the address could run scripts.
    #[error("{0} can be reached from other machines, and clients do not show who they are")]
    NotLoopback(SocketAddr),
    /// The address cannot be had.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The client began with something that is not the protocol.
    #[error("the client did not begin as the protocol asks")]
    Client(#[source] Box<ServerInitializeError>),
}

/// Serves the client on standard input and output until it leaves or a signal comes. Then everything of it is gone.
pub fn serve_stdio(host: Arc<Host>) -> Result<(), ServeError> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(ServeError::Start)?;
    let served = runtime.block_on(serve(host));
    // A thread may still be waiting for input that never comes.
    runtime.shutdown_background();
    served
}

async fn serve(host: Arc<Host>) -> Result<(), ServeError> {
    let stopped = stop_on_signal().map_err(ServeError::Start)?;
    let session = ClientSession::open(&host)
        .await
        .map_err(|error| ServeError::Session(error.message.into_owned()))?;
    let left = session.silent().clone();
    tokio::spawn({
        let (left, stopped, ended) = (left.clone(), stopped.clone(), session.ended().clone());
        async move {
            tokio::select! {
                () = stopped.cancelled() => {}
                () = async { left.cancelled().await; tokio::time::sleep(LAST_ANSWERS).await } => {}
            }
            ended.cancel();
        }
    });
    let talked = talk(SkillServer::new(host, Seat::Process(session.clone())), left, stopped).await;
    session.end().await;
    talked
}

async fn talk(server: SkillServer, left: CancellationToken, stopped: CancellationToken) -> Result<(), ServeError> {
    let (reader, writer) = stdio_pipes();
    let reader = TellsEnd { reader, ended: left };
    match server.serve_with_ct((reader, writer), stopped).await {
        Ok(running) => {
            // However it ended, what is left to do is the same.
            let _reason = running.waiting().await;
            Ok(())
        }
        // Nobody ever spoke, or a signal came first.
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

/// A reader that tells of its end at once. The protocol's own loop first waits for answers, and with them for runs
/// that nobody can want any more.
struct TellsEnd<R> {
    reader: R,
    ended: CancellationToken,
}

impl<R: AsyncRead + Unpin> AsyncRead for TellsEnd<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.reader).poll_read(cx, buffer);
        let is_end = match &polled {
            Poll::Ready(Ok(())) => buffer.filled().len() == before && buffer.remaining() > 0,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        if is_end {
            self.ended.cancel();
        }
        polled
    }
}
