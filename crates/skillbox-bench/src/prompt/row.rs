//! One line of the table.

use std::time::Duration;

use super::deepagents::PeerTime;
use crate::measure::Samples;

/// One line of the table.
pub(super) struct Row {
    /// The subject of the measurement.
    pub(super) group: String,
    /// The circumstances.
    pub(super) label: String,
    pub(super) samples: Samples,
    pub(super) target: Option<Duration>,
    /// The same work done by deepagents.
    pub(super) peer: Option<PeerTime>,
}
