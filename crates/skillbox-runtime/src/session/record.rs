//! The record of a session.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use skillbox_model::SessionId;

/// When a session was created and used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// The session.
    pub id: SessionId,
    /// Time of creation, in milliseconds since 1970.
    pub created_unix_ms: u64,
    /// Time of the last use, in milliseconds since 1970.
    pub last_used_unix_ms: u64,
    /// Number of runs.
    pub runs: u64,
}

impl SessionRecord {
    pub(super) fn new(id: SessionId) -> Self {
        let now = now_unix_ms();
        Self {
            id,
            created_unix_ms: now,
            last_used_unix_ms: now,
            runs: 0,
        }
    }

    /// Time since the last use.
    pub fn idle_time(&self) -> Duration {
        Duration::from_millis(now_unix_ms().saturating_sub(self.last_used_unix_ms))
    }
}

fn now_unix_ms() -> u64 {
    unix_ms(SystemTime::now())
}

pub(super) fn unix_ms(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
