//! One result.

use std::time::Duration;

use super::deepagents::PeerOutcome;
use crate::samples::Samples;

/// One result: a line of the table.
pub(super) struct Row {
    /// The subject of the measurement.
    pub(super) group: String,
    /// The case within the group.
    pub(super) label: String,
    pub(super) samples: Samples,
    pub(super) target: Option<Duration>,
    /// The same work done by deepagents.
    pub(super) peer: Option<PeerOutcome>,
}
