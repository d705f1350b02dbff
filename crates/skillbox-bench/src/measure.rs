//! Times of several rounds, and what to make of them.

use std::time::{Duration, Instant};

/// The times that one thing took, round for round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(Vec<Duration>);

impl Samples {
    /// Runs `work` once and keeps its time.
    pub(crate) fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        self.0.push(start.elapsed());
        result
    }

    /// Keeps a time that was measured elsewhere.
    pub(crate) fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// The median, or nothing when nothing was measured.
    pub(crate) fn median(&self) -> Option<Duration> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len().checked_sub(1)? / 2).copied()
    }

    /// Shortest and longest.
    pub(crate) fn range(&self) -> Option<(Duration, Duration)> {
        Some((*self.0.iter().min()?, *self.0.iter().max()?))
    }
}

/// Milliseconds, for tables and JSON.
pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// How many times `time` goes into `yardstick`'s place: 0.5 is half of it.
pub(crate) fn ratio(time: Duration, yardstick: Duration) -> f64 {
    time.as_secs_f64() / yardstick.as_secs_f64().max(f64::MIN_POSITIVE)
}
