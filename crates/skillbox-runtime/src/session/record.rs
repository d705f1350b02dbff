//! What is known of a session as a whole.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use skillbox_model::SessionId;

/// The record of one session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// The session.
    pub id: SessionId,
    /// When it was first used, in milliseconds since 1970.
    pub created_unix_ms: u64,
    /// When it was last used.
    pub last_used_unix_ms: u64,
    /// How many runs it has had.
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

    /// How long nobody has used it.
    pub fn idle(&self) -> Duration {
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
