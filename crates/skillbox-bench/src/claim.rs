//! What we say about our speed, and whether it is so.

use serde_json::{Value, json};

/// One line of the table of targets.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    /// What was measured.
    pub what: String,
    /// Against what.
    pub against: String,
    /// The number; none when it could not be measured here.
    pub measured: Option<f64>,
    /// What it has to be.
    pub bound: Bound,
}

/// What a number has to be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    /// At most so many times the other.
    AtMost(f64),
    /// At least so many times the other.
    AtLeast(f64),
    /// At most so many MiB.
    MebibytesAtMost(f64),
}

impl Claim {
    /// Whether it holds. What could not be measured is not missed.
    pub(crate) fn is_met(&self) -> bool {
        match (self.measured, self.bound) {
            (None, _) => true,
            (Some(measured), Bound::AtMost(most) | Bound::MebibytesAtMost(most)) => measured <= most,
            (Some(measured), Bound::AtLeast(least)) => measured >= least,
        }
    }

    /// One line for people.
    pub(crate) fn line(&self) -> String {
        let (unit, words, bound) = match self.bound {
            Bound::AtMost(most) => ("×", "at most", most),
            Bound::AtLeast(least) => ("×", "at least", least),
            Bound::MebibytesAtMost(most) => (" MiB", "at most", most),
        };
        let verdict = match self.measured {
            None => "not measured here".to_owned(),
            Some(measured) => {
                let verdict = if self.is_met() { "met" } else { "MISSED" };
                format!("{measured:.2}{unit} ({words} {bound}{unit}): {verdict}")
            }
        };
        format!("{:<38} against {:<34} {verdict}", self.what, self.against)
    }

    /// For programs.
    pub(crate) fn to_json(&self) -> Value {
        let (words, bound) = match self.bound {
            Bound::AtMost(most) => ("at_most", most),
            Bound::AtLeast(least) => ("at_least", least),
            Bound::MebibytesAtMost(most) => ("mib_at_most", most),
        };
        json!({"what": self.what, "against": self.against, "measured": self.measured, words: bound, "met": self.is_met()})
    }
}
