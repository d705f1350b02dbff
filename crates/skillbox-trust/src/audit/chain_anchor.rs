//! The file `audit.chain`, beside the directory of the log: that a log exists, and how far it was at its last checkpoint.
//!
//! Without it, the removal of the whole log and the return of an earlier copy would not be noticed.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use skillbox_model::{Digest, ErrorCode};

use super::head::{HEAD_FILE, Head};
use super::log_files::{log_numbers, open_private};
use crate::private_file::{read_limited, replace_file};
use crate::tagged_file::{from_tagged_bytes, to_tagged_bytes};
use crate::{HostKey, TrustError};

const ANCHOR_BYTES: usize = 320;
const ANCHOR_FILE: &str = "audit.chain";

/// What the log had at its last checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChainAnchor {
    /// The identifier of the chain.
    pub(super) chain: String,
    /// The number of records, and so the sequence number of the record after the checkpoint.
    pub(super) next: u64,
    /// The fingerprint of the checkpoint; none before the first record.
    pub(super) last: Option<Digest>,
}

impl ChainAnchor {
    /// The anchor of a log that ends with a checkpoint.
    pub(super) fn of(head: &Head) -> Self {
        Self {
            chain: head.chain.clone(),
            next: head.next,
            last: head.last,
        }
    }

    pub(super) fn path(trust_dir: &Path) -> PathBuf {
        trust_dir.join(ANCHOR_FILE)
    }

    pub(super) fn read(path: &Path, key: &HostKey) -> Result<Option<Self>, TrustError> {
        let Some(bytes) = read_limited(path, ANCHOR_BYTES as u64, ErrorCode::Storage)? else {
            return Ok(None);
        };
        match from_tagged_bytes(&bytes, key.audit_chain_key()) {
            Some(anchor) => anchor.map_err(|error| TrustError::json(ErrorCode::Storage, path, &error)),
            None => Err(anchor_error(
                path,
                "somebody changed it; restore it from a copy, or keep a copy of the log and move `audit` and this file away",
            )),
        }
    }

    /// Creates the file durably: a log without it is not continued.
    pub(super) fn create(&self, path: &Path, key: &HostKey) -> Result<(), TrustError> {
        replace_file(path, &to_tagged_bytes(self, key.audit_chain_key(), ANCHOR_BYTES), 0o600)
    }

    /// Overwrites the file. An older content, after a power failure, is still right.
    pub(super) fn write(&self, path: &Path, key: &HostKey) -> Result<(), TrustError> {
        let bytes = to_tagged_bytes(self, key.audit_chain_key(), ANCHOR_BYTES);
        open_private(path, false)?
            .write_all_at(&bytes, 0)
            .map_err(TrustError::io("write", path))
    }

    /// Why the log of this anchor cannot be continued.
    pub(super) fn missing_log_problem(&self) -> String {
        format!(
            "the audit log {} with {} records is missing; restore it from a copy, or move `{ANCHOR_FILE}` away to start a new log",
            self.chain, self.next
        )
    }
}

/// Whether a trust directory has, or had, a log.
pub fn has_log(trust_dir: &Path) -> bool {
    trust_dir.join("audit").exists() || ChainAnchor::path(trust_dir).exists()
}

/// The end of a log as another process wrote it, or the start of a new log.
pub(super) fn read_anchored_head(
    directory: &Path,
    anchor_path: &Path,
    bytes: &[u8],
    key: &HostKey,
) -> Result<(Head, ChainAnchor), TrustError> {
    let head_path = directory.join(HEAD_FILE);
    let is_empty = bytes.is_empty() && log_numbers(directory)?.is_empty();
    match (ChainAnchor::read(anchor_path, key)?, is_empty) {
        (Some(anchor), true) if anchor.next == 0 => Ok((Head::new(anchor.chain.clone()), anchor)),
        (Some(anchor), true) => Err(anchor_error(directory, anchor.missing_log_problem())),
        (Some(anchor), false) => {
            let head = Head::parse(bytes, &head_path, key)?;
            match head.chain == anchor.chain {
                true => Ok((head, anchor)),
                false => Err(anchor_error(directory, anchor.missing_log_problem())),
            }
        }
        (None, true) => {
            let anchor = ChainAnchor::of(&Head::new(uuid::Uuid::now_v7().to_string()));
            anchor.create(anchor_path, key)?;
            Ok((Head::new(anchor.chain.clone()), anchor))
        }
        (None, false) => {
            // A changed head has the more precise error.
            Head::parse(bytes, &head_path, key)?;
            Err(anchor_error(anchor_path, MISSING_ANCHOR_PROBLEM))
        }
    }
}

fn anchor_error(path: &Path, problem: impl Into<String>) -> TrustError {
    TrustError::NotAuthentic {
        code: ErrorCode::Storage,
        path: path.to_owned(),
        problem: problem.into(),
    }
}

/// Why a log without its anchor is not continued.
pub(super) const MISSING_ANCHOR_PROBLEM: &str =
    "it is missing beside the audit log; restore it from a copy, or keep a copy of the log and move `audit` away";
