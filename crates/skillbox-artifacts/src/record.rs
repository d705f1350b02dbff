//! The record of one stored version.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use skillbox_model::{Digest, RunId, SessionId};

use crate::{ArtifactName, ArtifactRef};

/// The sessions that share artifacts: one session, or all sessions of the user.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// All sessions of the user.
    User,
    /// One session.
    Session(SessionId),
}

/// What the caller knows about a file, stored with its version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArtifactMetadata {
    /// The MIME type, as determined at collection.
    pub mime_type: Option<String>,
    /// The run that created the file.
    pub run_id: Option<RunId>,
}

/// One stored version of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// The name.
    pub name: ArtifactName,
    /// The version, starting at 0. No version is used twice.
    pub version: u64,
    /// The size of the whole file.
    pub size_bytes: u64,
    /// The digest of the whole file, which is also the name of its blob.
    pub sha256: Digest,
    /// The MIME type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The run that created the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The time of storage in milliseconds since 1970.
    pub created_unix_ms: u64,
}

impl Artifact {
    /// The reference by which later runs can use this version as an input.
    pub fn reference(&self) -> String {
        let exact = ArtifactRef {
            name: self.name.clone(),
            version: Some(self.version),
        };
        format!("artifact://{exact}")
    }
}

/// The current time in milliseconds since 1970.
pub(crate) fn now_unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
