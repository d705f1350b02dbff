//! The end of the log, authenticated with the host key: without it, a cut-off end would not be noticed.

use std::path::Path;

use serde::{Deserialize, Serialize};
use skillbox_model::{Digest, ErrorCode};

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
        let json = serde_json::to_string(self).expect("strings and numbers serialize");
        let tag = Digest::from_sha256(key.head_tag(json.as_bytes())).hex();
        let mut bytes = format!("{json}\n{tag}\n").into_bytes();
        bytes.resize(HEAD_BYTES, b' ');
        bytes
    }

    pub(super) fn parse(bytes: &[u8], path: &Path, key: &HostKey) -> Result<Self, TrustError> {
        let not_authentic = || TrustError::NotAuthentic {
            code: ErrorCode::Storage,
            path: path.to_owned(),
            problem: "somebody changed the end of the audit log; keep a copy of the directory, then move it away"
                .to_owned(),
        };
        let text = std::str::from_utf8(bytes).map_err(|_| not_authentic())?;
        let (json, rest) = text.split_once('\n').ok_or_else(not_authentic)?;
        let tag = Digest::parse(&format!("sha256:{}", rest.trim_end())).map_err(|_| not_authentic())?;
        if !key.is_head_tag(json.as_bytes(), tag.as_bytes()) {
            return Err(not_authentic());
        }
        serde_json::from_str(json).map_err(|error| TrustError::json(ErrorCode::Storage, path, &error))
    }
}
