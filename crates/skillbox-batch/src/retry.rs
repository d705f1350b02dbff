//! Which failed jobs run again, and after which delay.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cause::FailureCause;

/// A lost run fails again while the executor or a service recovers, so its delay starts longer.
const LOST_DELAY: Duration = Duration::from_secs(1);
const FIRST_DELAY: Duration = Duration::from_millis(200);
const MAX_DELAY: Duration = Duration::from_secs(60);

/// Which failed jobs run again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// How often a job runs again after its first attempt.
    pub retries: u32,
    /// The causes that are retried; empty for every cause except a refused or cancelled run, whose next attempt would not
    /// differ.
    pub causes: BTreeSet<FailureCause>,
}

impl RetryPolicy {
    /// The delay before the next attempt; none if the failure is final. `attempt` is the number of the failed attempt,
    /// from 1.
    pub fn delay(&self, cause: FailureCause, attempt: u32) -> Option<Duration> {
        let is_retried = match self.causes.is_empty() {
            true => !matches!(cause, FailureCause::Refused | FailureCause::Cancelled),
            false => self.causes.contains(&cause),
        };
        if !is_retried || attempt > self.retries {
            return None;
        }
        let first = match cause {
            FailureCause::Lost => LOST_DELAY,
            _ => FIRST_DELAY,
        };
        Some(first.saturating_mul(1 << (attempt - 1).min(16)).min(MAX_DELAY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_a_maximum() {
        let policy = RetryPolicy {
            retries: 30,
            causes: BTreeSet::new(),
        };
        assert_eq!(policy.delay(FailureCause::Exit, 1), Some(Duration::from_millis(200)));
        assert_eq!(policy.delay(FailureCause::Exit, 2), Some(Duration::from_millis(400)));
        assert_eq!(policy.delay(FailureCause::Lost, 3), Some(Duration::from_secs(4)));
        assert_eq!(policy.delay(FailureCause::Lost, 30), Some(MAX_DELAY));
        assert_eq!(policy.delay(FailureCause::Lost, 31), None);
        assert_eq!(policy.delay(FailureCause::Refused, 1), None);
    }

    #[test]
    fn only_the_named_causes_are_retried() {
        let policy = RetryPolicy {
            retries: 1,
            causes: [FailureCause::Timeout].into(),
        };
        assert!(policy.delay(FailureCause::Timeout, 1).is_some());
        assert_eq!(policy.delay(FailureCause::Exit, 1), None);
        assert_eq!(RetryPolicy::default().delay(FailureCause::Lost, 1), None);
    }
}
