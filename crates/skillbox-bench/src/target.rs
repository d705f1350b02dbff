//! Performance targets, and whether they are met.

use serde_json::{Value, json};

/// A target with its measured number.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The measured subject.
    pub subject: String,
    /// What the subject is compared with.
    pub reference: String,
    /// The measured number; `None` when the measurement is not possible on this machine.
    pub measured: Option<f64>,
    /// The limit.
    pub bound: Bound,
}

/// The limit of a measured number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    /// At most this multiple of the reference.
    RatioAtMost(f64),
    /// At least this multiple of the reference.
    RatioAtLeast(f64),
    /// At most this number of MiB.
    MebibytesAtMost(f64),
    /// At most this number of microseconds.
    MicrosecondsAtMost(f64),
    /// At least this number in a second.
    PerSecondAtLeast(f64),
    /// At most this number of seconds.
    SecondsAtMost(f64),
}

impl Target {
    /// Whether the target is met. A target that could not be measured counts as met.
    pub(crate) fn is_met(&self) -> bool {
        match (self.measured, self.bound) {
            (None, _) => true,
            (
                Some(measured),
                Bound::RatioAtMost(limit)
                | Bound::MebibytesAtMost(limit)
                | Bound::MicrosecondsAtMost(limit)
                | Bound::SecondsAtMost(limit),
            ) => measured <= limit,
            (Some(measured), Bound::RatioAtLeast(limit) | Bound::PerSecondAtLeast(limit)) => measured >= limit,
        }
    }

    /// The target as one line of text.
    pub(crate) fn to_line(&self) -> String {
        let (unit, relation, bound) = match self.bound {
            Bound::RatioAtMost(limit) => ("×", "at most", limit),
            Bound::RatioAtLeast(limit) => ("×", "at least", limit),
            Bound::MebibytesAtMost(limit) => (" MiB", "at most", limit),
            Bound::MicrosecondsAtMost(limit) => (" µs", "at most", limit),
            Bound::PerSecondAtLeast(limit) => ("/s", "at least", limit),
            Bound::SecondsAtMost(limit) => (" s", "at most", limit),
        };
        let verdict = match self.measured {
            None => "not measured on this machine".to_owned(),
            Some(measured) => {
                let verdict = if self.is_met() { "met" } else { "MISSED" };
                format!("{measured:.2}{unit} ({relation} {bound}{unit}): {verdict}")
            }
        };
        format!("{:<38} against {:<34} {verdict}", self.subject, self.reference)
    }

    /// The target as JSON.
    pub(crate) fn to_json(&self) -> Value {
        let (relation, bound) = match self.bound {
            Bound::RatioAtMost(limit) => ("at_most", limit),
            Bound::RatioAtLeast(limit) => ("at_least", limit),
            Bound::MebibytesAtMost(limit) => ("mib_at_most", limit),
            Bound::MicrosecondsAtMost(limit) => ("us_at_most", limit),
            Bound::PerSecondAtLeast(limit) => ("per_second_at_least", limit),
            Bound::SecondsAtMost(limit) => ("seconds_at_most", limit),
        };
        json!({"what": self.subject, "against": self.reference, "measured": self.measured, relation: bound, "met": self.is_met()})
    }
}
