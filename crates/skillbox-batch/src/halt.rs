//! When a batch stops before all jobs have run.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The rule of `--halt`, in the notation of GNU parallel: `never`, or `soon` or `now` with `,fail=N` or `,fail=P%`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HaltRule {
    /// Every job runs.
    #[default]
    Never,
    /// No further job starts; running jobs end.
    Soon(FailureLimit),
    /// No further job starts; running jobs are killed, and they have no result.
    Now(FailureLimit),
}

/// How many failed jobs stop the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureLimit {
    /// This number.
    Count(usize),
    /// This part of all jobs of the batch.
    Percent(u8),
}

/// Why a batch stopped before all jobs had run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum HaltReason {
    /// The rule of `--halt`.
    Failures {
        /// The number of failed jobs.
        failed: usize,
    },
    /// A signal.
    Interrupted,
    /// The results or the state cannot be written.
    Storage {
        /// The error.
        message: String,
    },
    /// No executor can run jobs any more.
    ExecutorLost,
    /// Somebody cancelled the batch on its queue.
    Cancelled,
}

impl HaltRule {
    /// Whether the rule stops a batch of `total` jobs, of which `failed` have failed.
    pub fn is_reached(self, failed: usize, total: usize) -> bool {
        match self {
            Self::Never => false,
            Self::Soon(limit) | Self::Now(limit) => match limit {
                FailureLimit::Count(count) => failed >= count,
                FailureLimit::Percent(percent) => failed > 0 && failed * 100 >= usize::from(percent) * total,
            },
        }
    }

    /// Whether running jobs are killed.
    pub fn kills_running(self) -> bool {
        matches!(self, Self::Now(_))
    }
}

impl FromStr for HaltRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || format!("{text:?} is not a rule: never, or soon or now with ,fail=N or ,fail=P%");
        let (when, limit) = match text.split_once(',') {
            Some((when, condition)) => (when, condition.strip_prefix("fail=").ok_or_else(invalid)?),
            None => (text, "1"),
        };
        let limit = match limit.strip_suffix('%') {
            Some(percent) => percent
                .parse()
                .ok()
                .filter(|percent| (1..=100).contains(percent))
                .map(FailureLimit::Percent),
            None => limit.parse().ok().filter(|count| *count > 0).map(FailureLimit::Count),
        };
        let limit = limit.ok_or_else(invalid)?;
        match when {
            "never" if text == "never" => Ok(Self::Never),
            "soon" => Ok(Self::Soon(limit)),
            "now" => Ok(Self::Now(limit)),
            _ => Err(invalid()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_written_as_for_parallel() {
        let check = |text: &str, expected: HaltRule| assert_eq!(text.parse(), Ok(expected), "{text}");
        check("never", HaltRule::Never);
        check("soon", HaltRule::Soon(FailureLimit::Count(1)));
        check("soon,fail=3", HaltRule::Soon(FailureLimit::Count(3)));
        check("now,fail=20%", HaltRule::Now(FailureLimit::Percent(20)));
        for bad in [
            "",
            "later",
            "never,fail=1",
            "soon,3",
            "now,fail=0",
            "now,fail=0%",
            "now,fail=101%",
            "soon,fail=-1",
        ] {
            assert!(bad.parse::<HaltRule>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_limit_counts_failed_jobs_or_their_part_of_the_batch() {
        let count = HaltRule::Soon(FailureLimit::Count(2));
        assert!(!count.is_reached(1, 10) && count.is_reached(2, 10));
        let percent = HaltRule::Now(FailureLimit::Percent(20));
        assert!(!percent.is_reached(1, 10) && percent.is_reached(2, 10));
        assert!(!percent.is_reached(0, 0) && !HaltRule::Never.is_reached(10, 10));
    }
}
