//! How far the receiver is behind the log.

use std::path::Path;

use serde::Serialize;

use super::cursor::{Cursor, Problem};
use super::pending::read_head;
use crate::{HostKey, TrustError};

/// How far the receiver is behind the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ForwardStatus {
    /// Records that the receiver does not have yet.
    pub pending: u64,
    /// Records that were removed from the log before they were forwarded.
    pub missing: u64,
    /// Why the last attempt failed; none if it succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

/// How far the receiver is behind the log of a trust directory.
pub fn forward_status(trust_dir: &Path, key: &HostKey) -> Result<ForwardStatus, TrustError> {
    let directory = trust_dir.join("audit");
    let cursor = Cursor::read(&directory)?;
    let head = read_head(&directory, key)?;
    let forwarded = |chain: &str| match (&cursor.chain, cursor.next) {
        (Some(known), Some(next)) if known == chain => next,
        _ => 0,
    };
    Ok(ForwardStatus {
        pending: head.map_or(0, |head| head.next.saturating_sub(forwarded(&head.chain))),
        missing: cursor.missing,
        problem: cursor.problem,
    })
}
