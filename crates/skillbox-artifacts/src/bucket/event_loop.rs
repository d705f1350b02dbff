//! Runs asynchronous requests for synchronous callers.
//!
//! A run uses synchronous code on one thread, but HTTP clients need an event loop. The event loop runs on its own
//! thread, and the caller waits on a channel. That works on every thread, including those of other event loops.

use std::future::Future;
use std::io;
use std::sync::mpsc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// An event loop on its own thread. Both end when this value is dropped.
#[derive(Debug)]
pub(super) struct EventLoopThread {
    handle: Handle,
    _stop: oneshot::Sender<()>,
}

impl EventLoopThread {
    pub(super) fn start() -> io::Result<Self> {
        let (send, receive) = mpsc::sync_channel(1);
        let (stop, stopped) = oneshot::channel::<()>();
        std::thread::Builder::new()
            .name("artifacts".to_owned())
            .spawn(
                move || match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                    Err(error) => drop(send.send(Err(error))),
                    Ok(runtime) => {
                        let _receiver_dropped = send.send(Ok(runtime.handle().clone()));
                        let _ended = runtime.block_on(stopped);
                    }
                },
            )?;
        let started = receive
            .recv()
            .unwrap_or_else(|_| Err(io::Error::other("the thread ended immediately")));
        Ok(Self {
            handle: started?,
            _stop: stop,
        })
    }

    /// Starts a future with a timeout.
    pub(super) fn spawn_with_timeout<T>(
        &self,
        timeout: Duration,
        work: impl Future<Output = T> + Send + 'static,
    ) -> PendingRequest<T>
    where
        T: Send + 'static,
    {
        let (send, receive) = mpsc::sync_channel(1);
        let task = self.handle.spawn(async move {
            // The send fails if the caller has stopped waiting.
            let _unclaimed = send.send(tokio::time::timeout(timeout, work).await.ok());
        });
        PendingRequest { receive, task }
    }
}

/// A request in progress. Dropping it cancels the request.
#[derive(Debug)]
pub(super) struct PendingRequest<T> {
    receive: mpsc::Receiver<Option<T>>,
    task: JoinHandle<()>,
}

impl<T> PendingRequest<T> {
    /// Waits for the result; none after a timeout.
    pub(super) fn wait(self) -> Option<T> {
        self.receive.recv().ok().flatten()
    }
}

impl<T> Drop for PendingRequest<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}
