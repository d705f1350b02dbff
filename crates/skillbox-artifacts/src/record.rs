//! What is known of one stored version.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use skillbox_model::{Digest, RunId, SessionId};

use crate::{ArtifactName, ArtifactRef};

/// Whose artifacts: a session's own, or those of the user across sessions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Across sessions.
    User,
    /// One session's own.
    Session(SessionId),
}

/// Where a file came from, kept with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Its type, as the collector found it.
    pub mime_type: Option<String>,
    /// The run that made it.
    pub run_id: Option<RunId>,
}

/// One stored version of one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// The name.
    pub name: ArtifactName,
    /// The version, from 0 upwards, never used twice.
    pub version: u64,
    /// Size of the whole file.
    pub size_bytes: u64,
    /// Digest of the whole file, and the name of its blob.
    pub sha256: Digest,
    /// Its type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The run that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// When it was stored, in milliseconds since 1970.
    pub created_unix_ms: u64,
}

impl Artifact {
    /// The reference that later inputs can use.
    pub fn reference(&self) -> String {
        let exact = ArtifactRef {
            name: self.name.clone(),
            version: Some(self.version),
        };
        format!("artifact://{exact}")
    }
}

/// The present, as records have it.
pub(crate) fn now_unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
