//! The failure of an operation in the child, and its effect on the launch.

use std::io;

use crate::plan::Step;
use crate::profile::Need;
use crate::protocol::StepFailure;

/// Why an operation failed.
pub(super) struct OpError {
    /// The operation, worded to follow "cannot".
    what: &'static str,
    source: io::Error,
    /// Whether the launch ends even if the step is only preferred.
    is_fatal: bool,
}

/// A failed step, by its effect on the launch.
pub(super) enum ClassifiedFailure {
    /// The step is only preferred, and the launch continues.
    LaunchContinues(StepFailure),
    /// The launch ends.
    LaunchEnds(StepFailure),
}

impl OpError {
    /// The constructor for an operation: `map_err(OpError::during("…"))`.
    pub fn during<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self {
            what,
            source: error.into(),
            is_fatal: false,
        }
    }

    /// Like [`Self::during`], for a failure that ends the launch even if the step is only preferred.
    pub fn fatal_during<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self {
            what,
            source: error.into(),
            is_fatal: true,
        }
    }

    /// Decides whether the failure of this step ends the launch.
    pub fn classify(self, step: &Step) -> ClassifiedFailure {
        let failure = StepFailure::of_step(step, self.what, &self.source);
        match step.need {
            Need::Preferred if !self.is_fatal => ClassifiedFailure::LaunchContinues(failure),
            Need::Preferred | Need::Required | Need::Off => ClassifiedFailure::LaunchEnds(failure),
        }
    }
}
