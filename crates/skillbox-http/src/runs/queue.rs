//! The queue of runs: how many run at once, how many wait, and when a run is rejected.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;

/// Limits the number of running and of waiting runs. Waiting runs start in the order of their arrival.
#[derive(Debug)]
pub(crate) struct RunQueue {
    tickets: Arc<Semaphore>,
    permits: Arc<Semaphore>,
    /// The sizes of the two semaphores.
    max_tickets: AtomicUsize,
    max_permits: AtomicUsize,
}

/// A place in the queue, kept while the run waits and executes.
#[derive(Debug)]
pub(crate) struct QueueTicket {
    ticket: OwnedSemaphorePermit,
    permits: Arc<Semaphore>,
}

/// The permission to run, until it is dropped.
#[derive(Debug)]
pub(crate) struct RunPermit {
    _permit: OwnedSemaphorePermit,
    _ticket: OwnedSemaphorePermit,
}

impl RunQueue {
    pub(crate) fn new(max_running: usize, max_waiting: usize) -> Self {
        let max_permits = max_running.max(1);
        let max_tickets = max_permits + max_waiting;
        Self {
            tickets: Arc::new(Semaphore::new(max_tickets)),
            permits: Arc::new(Semaphore::new(max_permits)),
            max_tickets: max_tickets.into(),
            max_permits: max_permits.into(),
        }
    }

    /// Changes the limits. Runs that are admitted already stay admitted: a smaller limit is reached as they end.
    pub(crate) fn resize(&self, max_running: usize, max_waiting: usize) {
        let max_permits = max_running.max(1);
        resize(&self.permits, &self.max_permits, max_permits);
        resize(&self.tickets, &self.max_tickets, max_permits + max_waiting);
    }

    /// Joins the queue, or fails if it is full.
    pub(crate) fn join(&self) -> Result<QueueTicket, ApiError> {
        let ticket = self.tickets.clone().try_acquire_owned().map_err(|_| {
            let running = self.max_permits.load(Ordering::Relaxed);
            let waiting = self.max_tickets.load(Ordering::Relaxed).saturating_sub(running);
            ApiError::busy(format!(
                "the queue is full: {running} runs are running and {waiting} are waiting"
            ))
        })?;
        Ok(QueueTicket {
            ticket,
            permits: self.permits.clone(),
        })
    }

    /// The number of running and of waiting runs.
    pub(crate) fn running_and_waiting(&self) -> (usize, usize) {
        let used = |size: &AtomicUsize, semaphore: &Semaphore| {
            size.load(Ordering::Relaxed)
                .saturating_sub(semaphore.available_permits())
        };
        let running = used(&self.max_permits, &self.permits);
        let admitted = used(&self.max_tickets, &self.tickets);
        (running, admitted.saturating_sub(running))
    }
}

/// Changes the size of a semaphore.
fn resize(semaphore: &Arc<Semaphore>, size: &AtomicUsize, new_size: usize) {
    let old_size = size.swap(new_size, Ordering::Relaxed);
    if new_size >= old_size {
        semaphore.add_permits(new_size - old_size);
        return;
    }
    let excess = old_size - new_size;
    let left = excess - semaphore.forget_permits(excess);
    // Permits in use are taken away when they are returned.
    let semaphore = semaphore.clone();
    tokio::spawn(async move {
        for _ in 0..left {
            if let Ok(permit) = semaphore.acquire().await {
                permit.forget();
            }
        }
    });
}

impl QueueTicket {
    /// The permission to run if it is available at once, else the ticket.
    pub(crate) fn try_start(self) -> Result<RunPermit, Self> {
        match self.permits.clone().try_acquire_owned() {
            Ok(permit) => Ok(RunPermit {
                _permit: permit,
                _ticket: self.ticket,
            }),
            Err(_) => Err(self),
        }
    }

    /// Waits for the permission to run.
    pub(crate) async fn wait(self) -> Result<RunPermit, ApiError> {
        let permit = self.permits.acquire_owned().await;
        Ok(RunPermit {
            _permit: permit.map_err(|error| ApiError::internal(&error))?,
            _ticket: self.ticket,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_runs_the_second_waits_and_the_third_is_rejected() {
        let queue = RunQueue::new(1, 1);
        let first = queue.join().unwrap().try_start().unwrap();
        let second = queue.join().unwrap().try_start().unwrap_err();
        assert_eq!(queue.running_and_waiting(), (1, 1));
        let rejected = queue.join().unwrap_err();
        assert_eq!(rejected.status, axum::http::StatusCode::SERVICE_UNAVAILABLE);
        drop(first);
        drop(second.wait().await.unwrap());
        assert_eq!(queue.running_and_waiting(), (0, 0));
    }

    #[tokio::test]
    async fn limits_change_while_runs_are_admitted() {
        let queue = RunQueue::new(2, 0);
        let runs = [(); 2].map(|()| queue.join().unwrap().try_start().unwrap());
        assert!(queue.join().is_err());
        queue.resize(3, 0);
        let third = queue.join().unwrap().try_start().unwrap();
        assert!(queue.join().is_err());
        queue.resize(1, 0);
        drop(runs);
        tokio::task::yield_now().await;
        assert!(queue.join().is_err(), "one run is running, and one is allowed");
        drop(third);
        tokio::task::yield_now().await;
        assert!(queue.join().unwrap().try_start().is_ok());
        assert_eq!(queue.running_and_waiting(), (0, 0));
    }
}
