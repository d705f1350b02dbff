//! The file `approvals.revoked`, beside the directory of the approvals: which digests were revoked, and after which one.
//!
//! An approval and the list count revocations. Without this, an approval file that was copied before its revocation
//! would be valid again when it is copied back.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use skillbox_model::{Digest, ErrorCode};

use crate::private_file::{read_limited, replace_file};
use crate::tagged_file::{from_tagged_bytes, to_tagged_bytes};
use crate::{HostKey, TrustError};

const FILE: &str = "approvals.revoked";
/// As many digests as there can be approvals.
const MAX_BYTES: u64 = 16 << 20;

/// The revocations of this host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RevocationList {
    /// The number of revocations so far.
    pub(super) count: u64,
    /// The number of the last revocation of each revoked digest.
    revoked: BTreeMap<Digest, u64>,
}

/// Identifies the content of a file that is replaced and never changed in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl FileStamp {
    /// The stamp of a file; `None` if it does not exist.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, TrustError> {
        match fs::symlink_metadata(path) {
            Ok(metadata) => Ok(Some(Self {
                inode: metadata.ino(),
                size: metadata.size(),
                changed: (metadata.ctime(), metadata.ctime_nsec()),
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(TrustError::io("read", path)(error)),
        }
    }
}

impl RevocationList {
    pub(super) fn path(trust_dir: &Path) -> PathBuf {
        trust_dir.join(FILE)
    }

    pub(super) fn read(path: &Path, key: &HostKey) -> Result<Option<Self>, TrustError> {
        let Some(bytes) = read_limited(path, MAX_BYTES, ErrorCode::NotApproved)? else {
            return Ok(None);
        };
        match from_tagged_bytes(&bytes, key.revocations_key()) {
            Some(list) => list.map_err(|error| TrustError::json(ErrorCode::NotApproved, path, &error)),
            None => Err(not_authentic(path, "somebody changed it")),
        }
    }

    pub(super) fn write(&self, path: &Path, key: &HostKey) -> Result<(), TrustError> {
        replace_file(path, &to_tagged_bytes(self, key.revocations_key(), 0), 0o600)
    }

    /// Ends every approval of this digest that exists now.
    pub(super) fn revoke(&mut self, digest: Digest) {
        self.count += 1;
        self.revoked.insert(digest, self.count);
    }

    /// Checks an approval that was made after this number of revocations.
    pub(super) fn check(
        &self,
        digest: &Digest,
        made_after: u64,
        is_revoked: bool,
        path: &Path,
    ) -> Result<(), TrustError> {
        let problem = if made_after > self.count {
            "the list of revocations beside it is an earlier copy"
        } else if !is_revoked
            && self
                .revoked
                .get(digest)
                .is_some_and(|revocation| *revocation > made_after)
        {
            "it was revoked, and the file is a copy from before the revocation"
        } else {
            return Ok(());
        };
        Err(not_authentic(path, problem))
    }
}

/// The error of an approval beside which the list is missing.
pub(super) fn missing_list(path: &Path) -> TrustError {
    not_authentic(path, "it is missing beside the approvals")
}

fn not_authentic(path: &Path, problem: &str) -> TrustError {
    TrustError::NotAuthentic {
        code: ErrorCode::NotApproved,
        path: path.to_owned(),
        problem: format!(
            "{problem}; restore `approvals` and `{FILE}` from the same backup, or move both away, review the skills and \
             approve them again"
        ),
    }
}
