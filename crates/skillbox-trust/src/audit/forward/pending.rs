//! The records after the cursor, in batches of limited size.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::FlockOperation;
use serde::Deserialize;
use skillbox_model::ErrorCode;

use super::cursor::{Cursor, Problem};
use crate::audit::clock::now_ms;
use crate::audit::head::{HEAD_BYTES, HEAD_FILE, Head};
use crate::audit::log_files::{FileLock, LOCK_TIMEOUT, log_path, open_private, visit_lines};
use crate::private_file::read_limited;
use crate::{HostKey, TrustError};

/// Longer problems are cut: a receiver may answer with a page of HTML.
const MAX_PROBLEM_BYTES: usize = 1_000;

/// How much a batch may contain. A batch has at least one record.
#[derive(Clone, Copy, Debug)]
pub struct BatchLimit {
    /// Maximum number of records.
    pub records: usize,
    /// Maximum bytes of all records.
    pub bytes: usize,
}

/// Records for the receiver, in the order of the log.
#[derive(Clone, Debug)]
pub struct ForwardBatch {
    /// The records that are missing before the first one.
    pub missing: Option<MissingRecords>,
    /// The lines of the log, without line feeds.
    pub records: Vec<String>,
    after: Cursor,
}

/// Records that were removed from the log before they were forwarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingRecords {
    /// The sequence number of the first one.
    pub first: u64,
    /// Their number; none if the whole log was replaced.
    pub count: Option<u64>,
}

/// The forwarding of one log. Only one process forwards a log at a time.
#[derive(Debug)]
pub struct AuditForward {
    directory: PathBuf,
    key: Arc<HostKey>,
    cursor: Cursor,
    _lock: File,
}

#[derive(Deserialize)]
struct Sequenced {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    sequence: u64,
}

impl AuditForward {
    /// Opens the forwarding of a log; `None` if another process is forwarding it.
    pub fn open(trust_dir: &Path, key: Arc<HostKey>) -> Result<Option<Self>, TrustError> {
        let directory = trust_dir.join("audit");
        let path = directory.join("forward.lock");
        let lock = open_private(&path, false)?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            Err(error) => return Err(TrustError::io("lock", &path)(error.into())),
        }
        Ok(Some(Self {
            cursor: Cursor::read(&directory)?,
            directory,
            key,
            _lock: lock,
        }))
    }

    /// The next records that the receiver does not have; `None` if it has all.
    pub fn next_batch(&self, limit: BatchLimit) -> Result<Option<ForwardBatch>, TrustError> {
        let Some(head) = read_head(&self.directory, &self.key)? else {
            return Ok(None);
        };
        let mut batch = self.start_batch(&head);
        let mut bytes = 0;
        loop {
            let file = batch.after.file;
            let end = (file == head.file).then_some(head.offset);
            let is_whole = self.read_file(&mut batch, end, limit, &mut bytes)?;
            if !is_whole || file >= head.file {
                break;
            }
            batch.after.file += 1;
            batch.after.offset = 0;
        }
        let is_empty = batch.records.is_empty() && batch.missing.is_none();
        Ok((!is_empty).then_some(batch))
    }

    /// An empty batch behind the cursor, or at the start of a new chain.
    fn start_batch(&self, head: &Head) -> ForwardBatch {
        let mut after = self.cursor.clone();
        after.problem = None;
        let mut missing = None;
        if after.chain.as_ref() != Some(&head.chain) {
            if let (Some(_), Some(first)) = (&after.chain, after.next) {
                missing = Some(MissingRecords { first, count: None });
            }
            after = Cursor {
                chain: Some(head.chain.clone()),
                missing: after.missing,
                ..Cursor::default()
            };
        }
        if after.file < head.first_file {
            (after.file, after.offset) = (head.first_file, 0);
        }
        ForwardBatch {
            missing,
            records: Vec::new(),
            after,
        }
    }

    /// Adds the records of a file up to `end`. Returns whether all of them fit into the batch.
    fn read_file(
        &self,
        batch: &mut ForwardBatch,
        end: Option<u64>,
        limit: BatchLimit,
        bytes: &mut usize,
    ) -> Result<bool, TrustError> {
        let path = log_path(&self.directory, batch.after.file);
        let mut is_whole = true;
        visit_lines(&path, batch.after.offset, |line, is_complete| {
            if !is_complete || end.is_some_and(|end| batch.after.offset >= end) {
                return Ok(false);
            }
            let malformed = |problem: String| TrustError::Malformed {
                code: ErrorCode::Storage,
                path: path.clone(),
                line: None,
                problem: format!("at byte {}: {problem}; see `skillbox audit verify`", batch.after.offset),
            };
            let text = std::str::from_utf8(line).map_err(|error| malformed(error.to_string()))?;
            let record: Sequenced = serde_json::from_str(text).map_err(|error| malformed(error.to_string()))?;
            let sequence = record.metadata.sequence;
            let skipped = batch.after.next.map_or(0, |next| sequence.saturating_sub(next));
            let is_full = batch.records.len() >= limit.records || *bytes + line.len() > limit.bytes;
            if !batch.records.is_empty() && (is_full || skipped > 0) {
                is_whole = false;
                return Ok(false);
            }
            if skipped > 0 {
                let first = sequence - skipped;
                let count = Some(skipped);
                batch.missing.get_or_insert(MissingRecords { first, count });
                batch.after.missing += skipped;
            }
            batch.records.push(text.to_owned());
            batch.after.next = Some(sequence + 1);
            batch.after.offset += line.len() as u64 + 1;
            *bytes += line.len();
            Ok(true)
        })?;
        Ok(is_whole)
    }

    /// Records that the receiver has a batch. Its records are never forwarded again.
    pub fn confirm(&mut self, batch: ForwardBatch) -> Result<(), TrustError> {
        batch.after.store(&self.directory)?;
        self.cursor = batch.after;
        Ok(())
    }

    /// Records why an attempt failed, for `skillbox audit status` and `skillbox doctor`. Returns whether it is the first
    /// failure since the last success.
    pub fn report_problem(&mut self, message: &str) -> Result<bool, TrustError> {
        let message = &message[..message.floor_char_boundary(MAX_PROBLEM_BYTES)];
        let since_ms = match &self.cursor.problem {
            Some(known) if known.message == message => return Ok(false),
            Some(known) => Some(known.since_ms),
            None => None,
        };
        self.cursor.problem = Some(Problem {
            since_ms: since_ms.unwrap_or_else(now_ms),
            message: message.to_owned(),
        });
        self.cursor.store(&self.directory)?;
        Ok(since_ms.is_none())
    }

    /// Forgets the last problem. Returns whether there was one.
    pub fn clear_problem(&mut self) -> Result<bool, TrustError> {
        let had_problem = self.cursor.problem.take().is_some();
        if had_problem {
            self.cursor.store(&self.directory)?;
        }
        Ok(had_problem)
    }
}

/// The end of the log; `None` if the log has no record yet.
pub(super) fn read_head(directory: &Path, key: &HostKey) -> Result<Option<Head>, TrustError> {
    let lock_path = directory.join("lock");
    if !lock_path.exists() {
        return Ok(None);
    }
    let lock = open_private(&lock_path, false)?;
    // A writer replaces the head while it has the lock.
    let _lock = FileLock::acquire(&lock, &lock_path, FlockOperation::NonBlockingLockShared, LOCK_TIMEOUT)?;
    let path = directory.join(HEAD_FILE);
    match read_limited(&path, HEAD_BYTES as u64, ErrorCode::Storage)? {
        Some(bytes) if !bytes.is_empty() => Head::parse(&bytes, &path, key).map(Some),
        _ => Ok(None),
    }
}
