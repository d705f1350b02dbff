//! A connection to an allowed host that counts its bytes and ends at the limits of the run.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use skillbox_model::NetworkConnection;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep};

use crate::denial::Target;
use crate::run_state::RunState;

/// The counts of one connection. The connection is reported when the value is dropped.
#[derive(Debug)]
pub(crate) struct Meter {
    run: Arc<RunState>,
    target: Target,
    sent: AtomicU64,
    received: AtomicU64,
    start: Instant,
    last_activity: Mutex<Instant>,
    _permit: OwnedSemaphorePermit,
}

impl Meter {
    pub fn new(run: &Arc<RunState>, target: &Target, permit: OwnedSemaphorePermit) -> Arc<Self> {
        let now = Instant::now();
        Arc::new(Self {
            run: Arc::clone(run),
            target: target.clone(),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            start: now,
            last_activity: Mutex::new(now),
            _permit: permit,
        })
    }

    /// When the last byte was transferred.
    pub fn last_activity(&self) -> Instant {
        *self.last_activity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when no byte was transferred for this time.
    pub async fn wait_until_idle(&self, limit: Duration) {
        loop {
            let last = self.last_activity();
            if last.elapsed() >= limit {
                return;
            }
            tokio::time::sleep_until(last + limit).await;
        }
    }

    fn count(&self, counter: &AtomicU64, count: usize) -> io::Result<Option<Instant>> {
        let count = count as u64;
        counter.fetch_add(count, Ordering::Relaxed);
        *self.last_activity.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.run.count_bytes(count).map_err(|denial| {
            self.run.record_denial(&self.target, &denial);
            io::Error::new(io::ErrorKind::QuotaExceeded, denial)
        })
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.run.record.add_connection(NetworkConnection {
            host: self.target.host.to_string(),
            port: self.target.port,
            bytes_sent: self.sent.load(Ordering::Relaxed),
            bytes_received: self.received.load(Ordering::Relaxed),
            ms: u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX),
        });
    }
}

/// A connection to an allowed host.
#[derive(Debug)]
pub(crate) struct MeteredStream {
    inner: TcpStream,
    meter: Arc<Meter>,
    /// Pauses the connection while the rate of the run is exceeded.
    pause: Option<Pin<Box<Sleep>>>,
}

impl MeteredStream {
    pub fn new(inner: TcpStream, meter: Arc<Meter>) -> Self {
        Self {
            inner,
            meter,
            pause: None,
        }
    }

    pub fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    fn poll_pause(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(cx));
            self.pause = None;
        }
        Poll::Ready(())
    }

    fn set_pause(&mut self, until: Option<Instant>) {
        self.pause = until
            .filter(|until| *until > Instant::now())
            .map(|until| Box::pin(tokio::time::sleep_until(until)));
    }
}

impl AsyncRead for MeteredStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_pause(cx));
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buffer))?;
        let pause = self.meter.count(&self.meter.received, buffer.filled().len() - before)?;
        self.set_pause(pause);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for MeteredStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_pause(cx));
        let count = ready!(Pin::new(&mut self.inner).poll_write(cx, bytes))?;
        let pause = self.meter.count(&self.meter.sent, count)?;
        self.set_pause(pause);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
