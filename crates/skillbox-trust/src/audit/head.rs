//! The end of the log, authenticated with the host key: without it, a cut-off end would not be noticed.

use std::path::Path;

use serde::{Deserialize, Serialize};
use skillbox_model::{Digest, ErrorCode};

use crate::tagged_file::{from_tagged_bytes, to_tagged_bytes};
use crate::{HostKey, TrustError};

/// The size of the file. It never changes, so the head is overwritten in place by one write within one page.
pub(super) const HEAD_BYTES: usize = 640;
pub(super) const HEAD_FILE: &str = "head";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    /// The identifier of the chain.
    pub(super) chain: String,
    /// The number of the oldest log file that is kept.
    pub(super) first_file: u64,
    /// The fingerprint before the oldest record that is kept.
    pub(super) first_previous: Option<Digest>,
    /// The number of the newest log file.
    pub(super) file: u64,
    /// Bytes of the newest log file.
    pub(super) offset: u64,
    /// The sequence number of the next record.
    pub(super) next: u64,
    /// The fingerprint of the newest record.
    pub(super) last: Option<Digest>,
    /// Records since the last checkpoint.
    pub(super) since_checkpoint: u32,
    /// The time of the last checkpoint, in milliseconds since 1970.
    pub(super) checkpoint_ms: u64,
}

impl Head {
    pub(super) fn new(chain: String) -> Self {
        Self {
            chain,
            first_file: 0,
            first_previous: None,
            file: 0,
            offset: 0,
            next: 0,
            last: None,
            since_checkpoint: 0,
            checkpoint_ms: 0,
        }
    }

    pub(super) fn to_bytes(&self, key: &HostKey) -> Vec<u8> {
        to_tagged_bytes(self, key.audit_head_key(), HEAD_BYTES)
    }

    pub(super) fn parse(bytes: &[u8], path: &Path, key: &HostKey) -> Result<Self, TrustError> {
        match from_tagged_bytes(bytes, key.audit_head_key()) {
            Some(head) => head.map_err(|error| TrustError::json(ErrorCode::Storage, path, &error)),
            None => Err(TrustError::NotAuthentic {
                code: ErrorCode::Storage,
                path: path.to_owned(),
                problem: "somebody changed the end of the audit log; keep a copy of `audit` and `audit.chain`, then \
                          move both away"
                    .to_owned(),
            }),
        }
    }

    /// Goes on after a record that the log should have and lacks, so that every verification reports the gap.
    pub(super) fn go_on_after(&mut self, next: u64, last: Option<Digest>) {
        if next > self.next {
            self.next = next;
            self.last = last;
        }
    }
}
