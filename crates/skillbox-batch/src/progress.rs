//! The counters of a running batch, which any thread may read.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The counters of a running batch. Finished jobs count when their results are durable.
#[derive(Debug, Default)]
pub struct Progress {
    /// The jobs of the batch.
    pub(crate) total: AtomicUsize,
    /// Jobs that had a durable result before this batch started.
    pub(crate) resumed: AtomicUsize,
    /// Jobs that ended well.
    pub(crate) ok: AtomicUsize,
    /// Jobs that failed.
    pub(crate) failed: AtomicUsize,
    /// Jobs that run now.
    pub(crate) running: AtomicUsize,
    /// Further attempts.
    pub(crate) retries: AtomicUsize,
}

impl Progress {
    /// The jobs of the batch.
    pub fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    /// Jobs that had a durable result before this batch started.
    pub fn resumed(&self) -> usize {
        self.resumed.load(Ordering::Relaxed)
    }

    /// Jobs of this invocation that ended well.
    pub fn ok(&self) -> usize {
        self.ok.load(Ordering::Relaxed)
    }

    /// Jobs of this invocation that failed.
    pub fn failed(&self) -> usize {
        self.failed.load(Ordering::Relaxed)
    }

    /// Jobs that run now.
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// Further attempts after a failure.
    pub fn retries(&self) -> usize {
        self.retries.load(Ordering::Relaxed)
    }
}

pub(crate) fn add_one(counter: &AtomicUsize) {
    counter.fetch_add(1, Ordering::Relaxed);
}
