//! Claims about performance, and whether they are met.

use serde_json::{Value, json};

/// One line of the table of targets.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    /// The measured subject.
    pub what: String,
    /// The reference.
    pub against: String,
    /// The measured number; `None` when the measurement is not possible on this machine.
    pub measured: Option<f64>,
    /// The limit.
    pub bound: Bound,
}

/// The limit of a measured number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    /// At most this multiple of the reference.
    AtMost(f64),
    /// At least this multiple of the reference.
    AtLeast(f64),
    /// At most this number of MiB.
    MebibytesAtMost(f64),
}

impl Claim {
    /// Whether the claim is met. A claim that could not be measured counts as met.
    pub(crate) fn is_met(&self) -> bool {
        match (self.measured, self.bound) {
            (None, _) => true,
            (Some(measured), Bound::AtMost(most) | Bound::MebibytesAtMost(most)) => measured <= most,
            (Some(measured), Bound::AtLeast(least)) => measured >= least,
        }
    }

    /// The claim as one line of text.
    pub(crate) fn to_line(&self) -> String {
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

    /// The claim as JSON.
    pub(crate) fn to_json(&self) -> Value {
        let (words, bound) = match self.bound {
            Bound::AtMost(most) => ("at_most", most),
            Bound::AtLeast(least) => ("at_least", least),
            Bound::MebibytesAtMost(most) => ("mib_at_most", most),
        };
        json!({"what": self.what, "against": self.against, "measured": self.measured, words: bound, "met": self.is_met()})
    }
}
