//! The way from a thread that waits to the event loop that talks.
//!
//! A run is one synchronous thread, and so is everything below it; HTTP clients want an event loop. Questions are
//! spawned onto one that has a thread of its own, and the asker waits on a plain channel, which works on every thread,
//! those of other event loops included.

use std::future::Future;
use std::io;
use std::sync::mpsc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// An event loop on its thread; both end with this value.
#[derive(Debug)]
pub(super) struct Bridge {
    handle: Handle,
    _stop: oneshot::Sender<()>,
}

impl Bridge {
    pub(super) fn start() -> io::Result<Self> {
        let (send, receive) = mpsc::sync_channel(1);
        let (stop, stopped) = oneshot::channel::<()>();
        std::thread::Builder::new()
            .name("artifacts".to_owned())
            .spawn(
                move || match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                    Err(error) => drop(send.send(Err(error))),
                    Ok(runtime) => {
                        let _gone = send.send(Ok(runtime.handle().clone()));
                        let _ended = runtime.block_on(stopped);
                    }
                },
            )?;
        let started = receive
            .recv()
            .unwrap_or_else(|_| Err(io::Error::other("the thread ended at once")));
        Ok(Self {
            handle: started?,
            _stop: stop,
        })
    }

    /// Starts something that may take so long and no longer.
    pub(super) fn begin<T>(&self, patience: Duration, work: impl Future<Output = T> + Send + 'static) -> Pending<T>
    where
        T: Send + 'static,
    {
        let (send, receive) = mpsc::sync_channel(1);
        let task = self.handle.spawn(async move {
            // Nobody waits any more: the answer is of no use.
            let _late = send.send(tokio::time::timeout(patience, work).await.ok());
        });
        Pending { receive, task }
    }
}

/// Something that is under way. Given up when it is dropped.
#[derive(Debug)]
pub(super) struct Pending<T> {
    receive: mpsc::Receiver<Option<T>>,
    task: JoinHandle<()>,
}

impl<T> Pending<T> {
    /// What became of it, or none where it took too long.
    pub(super) fn wait(self) -> Option<T> {
        self.receive.recv().ok().flatten()
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}
