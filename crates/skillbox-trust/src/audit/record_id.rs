//! A record of the log, as people keep it elsewhere: `SEQUENCE:FINGERPRINT`.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use skillbox_model::Digest;

/// Identifies a record and, through the chain, everything before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordId {
    /// The sequence number.
    pub sequence: u64,
    /// The fingerprint.
    pub fingerprint: Digest,
}

/// Why a text is not a [`RecordId`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not SEQUENCE:FINGERPRINT; `skillbox audit verify` prints that of the last record")]
pub struct RecordIdError(String);

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.sequence, self.fingerprint.hex())
    }
}

impl FromStr for RecordId {
    type Err = RecordIdError;

    fn from_str(text: &str) -> Result<Self, RecordIdError> {
        let parse = || {
            let (sequence, hex) = text.split_once(':')?;
            Some(Self {
                sequence: sequence.parse().ok()?,
                fingerprint: Digest::parse(&format!("sha256:{hex}")).ok()?,
            })
        };
        parse().ok_or_else(|| RecordIdError(text.chars().take(100).collect()))
    }
}

impl Serialize for RecordId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
