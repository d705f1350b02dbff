//! How far the log was forwarded, and the last problem. The file is replaced in one step and survives a power failure.

use std::path::Path;

use serde::{Deserialize, Serialize};
use skillbox_model::ErrorCode;

use crate::TrustError;
use crate::private_file::{read_limited, replace_file};

const CURSOR_FILE: &str = "forwarded";
/// The problem of a receiver is limited, and the rest is short.
const MAX_CURSOR_BYTES: u64 = 16 << 10;

/// The position behind the last record that the receiver has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cursor {
    /// The identifier of the chain; none before the first batch.
    pub(super) chain: Option<String>,
    /// The number of the log file.
    pub(super) file: u64,
    /// The offset in the log file.
    pub(super) offset: u64,
    /// The sequence number of the next record; none before the first batch of a chain.
    pub(super) next: Option<u64>,
    /// Records that were removed from the log before they were forwarded.
    pub(super) missing: u64,
    /// Why the last attempt failed; none if it succeeded.
    pub(super) problem: Option<Problem>,
}

/// A failed attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Problem {
    /// The first failure since the last success, in milliseconds since 1970.
    pub since_ms: u64,
    /// The newest failure.
    pub message: String,
}

impl Cursor {
    pub(super) fn read(directory: &Path) -> Result<Self, TrustError> {
        let path = directory.join(CURSOR_FILE);
        match read_limited(&path, MAX_CURSOR_BYTES, ErrorCode::Storage)? {
            Some(bytes) => {
                serde_json::from_slice(&bytes).map_err(|error| TrustError::json(ErrorCode::Storage, &path, &error))
            }
            None => Ok(Self::default()),
        }
    }

    pub(super) fn store(&self, directory: &Path) -> Result<(), TrustError> {
        let bytes = serde_json::to_vec(self).expect("numbers and strings serialize");
        replace_file(&directory.join(CURSOR_FILE), &bytes, 0o600)
    }
}

/// The oldest log file with records that are not forwarded. Files before it can be removed.
pub(in crate::audit) fn first_unforwarded_file(directory: &Path, chain: &str) -> Result<u64, TrustError> {
    let cursor = Cursor::read(directory)?;
    Ok(match cursor.chain {
        Some(forwarded) if forwarded == chain => cursor.file,
        _ => 0,
    })
}
