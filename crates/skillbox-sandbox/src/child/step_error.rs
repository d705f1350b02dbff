//! The failure of one operation.

use std::io;

use crate::plan::Step;
use crate::profile::Need;
use crate::protocol::StepFailure;

/// Why an operation failed.
pub(super) struct StepError {
    /// The operation, as the rest of a sentence that starts with "cannot".
    what: &'static str,
    source: io::Error,
    /// Whether the launch cannot continue even where the step is only preferred.
    is_fatal: bool,
}

/// What a failed step means for the launch.
pub(super) enum FailedStep {
    /// The step is only preferred, and the launch continues.
    Degraded(StepFailure),
    /// The launch ends.
    Fatal(StepFailure),
}

impl StepError {
    /// The constructor for an operation: `map_err(StepError::during("…"))`.
    pub fn during<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self {
            what,
            source: error.into(),
            is_fatal: false,
        }
    }

    /// The same for a failure that ends the launch in any case.
    pub fn fatal_during<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self {
            what,
            source: error.into(),
            is_fatal: true,
        }
    }

    /// What the error means for the launch.
    pub fn of_step(self, step: &Step) -> FailedStep {
        let failure = StepFailure::of_step(step, self.what, &self.source);
        match step.need {
            Need::Preferred if !self.is_fatal => FailedStep::Degraded(failure),
            Need::Preferred | Need::Required | Need::Off => FailedStep::Fatal(failure),
        }
    }
}
