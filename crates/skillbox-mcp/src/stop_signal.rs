//! Stops a server when a signal arrives.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Returns a token that SIGTERM and SIGINT cancel.
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
