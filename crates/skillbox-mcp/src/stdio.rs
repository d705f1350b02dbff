//! Serves one client on standard input and output, with one session for the process.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::io::stdio_pipes;
use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::CancellationToken;

use crate::request_handler::RequestHandler;
use crate::serve_error::ServeError;
use crate::server_state::ServerState;
use crate::session_resolver::SessionResolver;
use crate::stop_signal::stop_on_signal;

/// Time for the last calls to end by themselves after the client has closed its input. Clients wait two seconds before
/// they kill a server.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

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
    let served = serve_client(RequestHandler::new(server, resolver), input_closed, stopped).await;
    session.end().await;
    served
}

async fn serve_client(
    handler: RequestHandler,
    input_closed: CancellationToken,
    stopped: CancellationToken,
) -> Result<(), ServeError> {
    let (reader, writer) = stdio_pipes();
    let reader = EofNotifier { reader, input_closed };
    match handler.serve_with_ct((reader, writer), stopped).await {
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

/// A reader that reports the end of input at once. The loop of `rmcp` would report it only after all pending results, and
/// runs would continue although their client has disconnected.
struct EofNotifier<R> {
    reader: R,
    input_closed: CancellationToken,
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
            self.input_closed.cancel();
        }
        polled
    }
}
