//! Who may run now, who waits, and who is sent away.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;

/// Lets so many in at once, and so many more wait, first come, first served.
#[derive(Debug)]
pub(crate) struct Gate {
    places: Arc<Semaphore>,
    turns: Arc<Semaphore>,
    all_places: usize,
    all_turns: usize,
}

/// A place in the queue.
#[derive(Debug)]
pub(crate) struct Place {
    place: OwnedSemaphorePermit,
    turns: Arc<Semaphore>,
}

/// The right to run, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    _turn: OwnedSemaphorePermit,
    _place: OwnedSemaphorePermit,
}

impl Gate {
    pub(crate) fn new(at_once: usize, waiting: usize) -> Self {
        let (all_turns, all_places) = (at_once.max(1), at_once.max(1) + waiting);
        Self {
            places: Arc::new(Semaphore::new(all_places)),
            turns: Arc::new(Semaphore::new(all_turns)),
            all_places,
            all_turns,
        }
    }

    /// A place in the queue, where there is one left.
    pub(crate) fn enter(&self) -> Result<Place, ApiError> {
        let place = self.places.clone().try_acquire_owned().map_err(|_| {
            let (running, waiting) = (self.all_turns, self.all_places - self.all_turns);
            ApiError::busy(format!("{running} runs are going on and {waiting} more are waiting"))
        })?;
        Ok(Place {
            place,
            turns: self.turns.clone(),
        })
    }

    /// How many run, and how many wait.
    pub(crate) fn load(&self) -> (usize, usize) {
        let running = self.all_turns - self.turns.available_permits();
        let inside = self.all_places - self.places.available_permits();
        (running, inside.saturating_sub(running))
    }
}

impl Place {
    /// The turn, where nobody has to be waited for; else the place stays.
    pub(crate) fn turn_at_once(self) -> Result<Turn, Self> {
        match self.turns.clone().try_acquire_owned() {
            Ok(turn) => Ok(Turn {
                _turn: turn,
                _place: self.place,
            }),
            Err(_) => Err(self),
        }
    }

    /// Waits for the turn.
    pub(crate) async fn turn(self) -> Result<Turn, ApiError> {
        let turn = self.turns.acquire_owned().await;
        Ok(Turn {
            _turn: turn.map_err(|error| ApiError::internal(&error))?,
            _place: self.place,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_runs_one_waits_and_the_third_is_sent_away() {
        let gate = Gate::new(1, 1);
        let first = gate.enter().unwrap().turn_at_once().unwrap();
        let second = gate.enter().unwrap().turn_at_once().unwrap_err();
        assert_eq!(gate.load(), (1, 1));
        let refused = gate.enter().unwrap_err();
        assert_eq!(refused.status, axum::http::StatusCode::SERVICE_UNAVAILABLE);
        drop(first);
        drop(second.turn().await.unwrap());
        assert_eq!(gate.load(), (0, 0));
    }
}
