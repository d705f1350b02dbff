//! The queue of runs: how many run at once, how many wait, and when a run is rejected.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;

/// Limits the number of running and of waiting runs. Waiting runs start in the order of their arrival.
#[derive(Debug)]
pub(crate) struct RunQueue {
    tickets: Arc<Semaphore>,
    permits: Arc<Semaphore>,
    max_tickets: usize,
    max_permits: usize,
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
            max_tickets,
            max_permits,
        }
    }

    /// Joins the queue, or fails if it is full.
    pub(crate) fn join(&self) -> Result<QueueTicket, ApiError> {
        let ticket = self.tickets.clone().try_acquire_owned().map_err(|_| {
            let (running, waiting) = (self.max_permits, self.max_tickets - self.max_permits);
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
        let running = self.max_permits - self.permits.available_permits();
        let admitted = self.max_tickets - self.tickets.available_permits();
        (running, admitted.saturating_sub(running))
    }
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
}
