//! The times of several rounds, and their statistics.

use std::time::{Duration, Instant};

/// The times of one operation, round by round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(Vec<Duration>);

impl Samples {
    /// Runs `work` once and records its time.
    pub(crate) fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        self.0.push(start.elapsed());
        result
    }

    /// Records a time that was measured elsewhere.
    pub(crate) fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// The median; `None` if there are no times.
    pub(crate) fn median(&self) -> Option<Duration> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len().checked_sub(1)? / 2).copied()
    }

    /// The shortest and the longest time; `None` if there are no times.
    pub(crate) fn range(&self) -> Option<(Duration, Duration)> {
        Some((*self.0.iter().min()?, *self.0.iter().max()?))
    }
}

/// Converts a time to milliseconds.
pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The ratio of a time to a reference: 0.5 is half of it.
pub(crate) fn ratio(time: Duration, reference: Duration) -> f64 {
    time.as_secs_f64() / reference.as_secs_f64().max(f64::MIN_POSITIVE)
}
