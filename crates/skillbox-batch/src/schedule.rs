//! Which job runs next: the list in its order, and failed jobs again after their delay. Pure; callers pass the time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

/// One attempt of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Attempt {
    /// The index of the job.
    pub index: usize,
    /// The number of the attempt, from 1.
    pub number: u32,
}

/// What a free worker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Run this.
    Run(Attempt),
    /// Wait until a running job ends or, if given, until this time.
    Wait(Option<Instant>),
    /// Nothing is left.
    Finished,
}

/// The jobs that still have to run.
#[derive(Debug)]
pub(crate) struct Schedule {
    pending: std::vec::IntoIter<usize>,
    delayed: BinaryHeap<Reverse<(Instant, Attempt)>>,
    running: usize,
    is_stopped: bool,
}

impl Schedule {
    pub fn new(pending: Vec<usize>) -> Self {
        Self {
            pending: pending.into_iter(),
            delayed: BinaryHeap::new(),
            running: 0,
            is_stopped: false,
        }
    }

    /// Takes the next attempt. The caller reports its end with [`Self::end`] or [`Self::retry`].
    pub fn next(&mut self, now: Instant) -> Next {
        if self.is_stopped {
            return Next::Finished;
        }
        let due = self.delayed.peek().map(|Reverse((due, _))| *due);
        if due.is_some_and(|due| due <= now)
            && let Some(Reverse((_, attempt))) = self.delayed.pop()
        {
            self.running += 1;
            return Next::Run(attempt);
        }
        if let Some(index) = self.pending.next() {
            self.running += 1;
            return Next::Run(Attempt { index, number: 1 });
        }
        if self.running == 0 && due.is_none() {
            Next::Finished
        } else {
            Next::Wait(due)
        }
    }

    /// An attempt ended, and its result is final.
    pub fn end(&mut self) {
        self.running -= 1;
    }

    /// An attempt ended, and the job runs again at `due`.
    pub fn retry(&mut self, failed: Attempt, due: Instant) {
        self.running -= 1;
        let next = Attempt {
            number: failed.number + 1,
            ..failed
        };
        self.delayed.push(Reverse((due, next)));
    }

    /// No further attempt starts.
    pub fn stop(&mut self) {
        self.is_stopped = true;
    }

    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn first(index: usize) -> Attempt {
        Attempt { index, number: 1 }
    }

    #[test]
    fn a_failed_job_runs_again_when_its_delay_is_over() {
        let now = Instant::now();
        let due = now + Duration::from_secs(1);
        let mut schedule = Schedule::new(vec![3, 5]);
        assert_eq!(schedule.next(now), Next::Run(first(3)));
        schedule.retry(first(3), due);
        assert_eq!(schedule.next(now), Next::Run(first(5)));
        assert_eq!(schedule.next(now), Next::Wait(Some(due)));
        schedule.end();
        assert_eq!(
            schedule.next(now),
            Next::Wait(Some(due)),
            "a delayed job is not finished"
        );
        assert_eq!(schedule.next(due), Next::Run(Attempt { index: 3, number: 2 }));
        assert_eq!(
            schedule.next(due),
            Next::Wait(None),
            "the running job may still be retried"
        );
        schedule.end();
        assert_eq!(schedule.next(due), Next::Finished);
    }

    #[test]
    fn a_stopped_schedule_starts_nothing() {
        let now = Instant::now();
        let mut schedule = Schedule::new(vec![0, 1]);
        assert_eq!(schedule.next(now), Next::Run(first(0)));
        schedule.retry(first(0), now);
        schedule.stop();
        assert_eq!(schedule.next(now), Next::Finished);
        assert!(schedule.is_stopped());
    }
}
