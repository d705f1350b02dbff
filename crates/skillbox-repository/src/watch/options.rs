//! The timing and the state of a watch.

use std::time::Duration;

/// The timing of a watch.
#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// How long events must pause before they are processed.
    pub quiet_period: Duration,
    /// The maximum time between an event and its processing.
    pub max_delay: Duration,
    /// The time between two checks of the directories that are polled. Checks that take long are less frequent.
    pub poll_interval: Duration,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            quiet_period: Duration::from_millis(100),
            max_delay: Duration::from_secs(1),
            poll_interval: Duration::from_secs(2),
        }
    }
}

/// How changes are detected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchMode {
    /// Watches are being set up; every refresh checks everything.
    Starting,
    /// By events of the kernel.
    Events {
        /// The number of directories with a watch.
        watched: usize,
        /// The number of directories that are polled.
        polled: usize,
    },
    /// By polling all directories.
    Polling {
        /// Why there are no events.
        reason: String,
    },
}
