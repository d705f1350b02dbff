//! Verifies a log: every fingerprint, link of the chain, tag and checkpoint, and the end.
//!
//! Writers go on meanwhile: a verification checks the log as it was when it started.

use std::fs;
use std::path::{Path, PathBuf};

use ring::signature::{ED25519, UnparsedPublicKey};
use rustix::fs::FlockOperation;
use serde::Serialize;
use skillbox_model::{Digest, ErrorCode};

use super::attestation::check_line;
use super::chain_anchor::{ChainAnchor, MISSING_ANCHOR_PROBLEM};
use super::head::{HEAD_BYTES, HEAD_FILE, Head};
use super::log::CHECKPOINT_RECORDS;
use super::log_files::{FileLock, LOCK_TIMEOUT, log_numbers, log_path, open_private, visit_lines_before};
use super::record_id::RecordId;
use crate::host_key::public_key_id;
use crate::private_file::read_limited;
use crate::{HostKey, TrustError};

/// Attempts without the lock. Only the removal of the oldest file during an attempt costs another one.
const MAX_ATTEMPTS: usize = 3;

/// The key that a log is verified with.
#[derive(Clone, Copy, Debug)]
pub enum LogKey<'a> {
    /// The key of the host that wrote the log: everything is checked.
    Host(&'a HostKey),
    /// Its public key, for a copy: neither tags nor the end are checked, and records after the last checkpoint have no
    /// signature that covers them.
    Public([u8; 32]),
}

/// What a verification found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    /// Records that were checked and are valid.
    pub records: u64,
    /// Signatures that were checked and are valid.
    pub checkpoints: u64,
    /// Records after the last checkpoint.
    pub after_checkpoint: u64,
    /// Whether the tags of the records and the end of the log were checked, which needs the key of the host.
    pub tags_checked: bool,
    /// The last valid record.
    pub last: Option<RecordId>,
    /// The first bad record; none if the log is intact.
    pub bad: Option<BadRecord>,
}

/// The first record that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BadRecord {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from one.
    pub line: u64,
    /// What is wrong.
    pub problem: String,
}

/// Verifies the log of a trust directory.
pub fn verify_log(trust_dir: &Path, key: &HostKey) -> Result<VerifyReport, TrustError> {
    verify_log_with(trust_dir, LogKey::Host(key), None)
}

/// Verifies the log of a trust directory, or a copy of it. `expected` is a record that it must have.
pub fn verify_log_with(
    trust_dir: &Path,
    key: LogKey<'_>,
    expected: Option<RecordId>,
) -> Result<VerifyReport, TrustError> {
    let directory = trust_dir.join("audit");
    let key = match key {
        LogKey::Host(key) => key,
        LogKey::Public(public_key) => return verify_copy(&directory, public_key, expected),
    };
    let anchor_path = ChainAnchor::path(trust_dir);
    let mut attempt = 1;
    loop {
        let without_log = |anchor: Option<ChainAnchor>| match (anchor.filter(|anchor| anchor.next > 0), expected) {
            (Some(anchor), _) => bad_report(&directory, anchor.missing_log_problem()),
            (None, Some(expected)) => bad_report(&directory, format!("there is no log with the record {expected}")),
            (None, None) => VerifyReport::default(),
        };
        if !directory.exists() {
            return Ok(without_log(ChainAnchor::read(&anchor_path, key)?));
        }
        let lock_path = directory.join("lock");
        let lock_file = open_private(&lock_path, false)?;
        let shared = FlockOperation::NonBlockingLockShared;
        let lock = FileLock::acquire(&lock_file, &lock_path, shared, LOCK_TIMEOUT)?;
        // Writers replace it at each checkpoint, before they release the lock.
        let anchor = ChainAnchor::read(&anchor_path, key)?;
        let Some(captured) = CapturedLog::read(&directory, key)? else {
            return Ok(without_log(anchor));
        };
        let _lock = (attempt == MAX_ATTEMPTS).then_some(lock);
        let Some(anchor) = anchor else {
            return Ok(bad_report(&anchor_path, MISSING_ANCHOR_PROBLEM.to_owned()));
        };
        let report = captured.verify(&directory, key, &anchor, expected)?;
        // The oldest files may have been removed meanwhile, to make place for new ones.
        let is_first_removed = !log_path(&directory, captured.head.first_file).exists();
        let is_removed = report.bad.is_some() && is_first_removed && captured.head.first_file < captured.head.file;
        if !is_removed || attempt == MAX_ATTEMPTS {
            return Ok(report);
        }
        attempt += 1;
    }
}

fn bad_report(file: &Path, problem: String) -> VerifyReport {
    VerifyReport {
        bad: Some(BadRecord {
            file: file.to_owned(),
            line: 1,
            problem,
        }),
        ..VerifyReport::default()
    }
}

/// The log at one moment, when no process was writing.
struct CapturedLog {
    head: Head,
    numbers: Vec<u64>,
    /// The size of the newest file. Another process may write behind it.
    size: u64,
}

impl CapturedLog {
    /// Reads it while the lock is held; `None` if the log has no record yet.
    fn read(directory: &Path, key: &HostKey) -> Result<Option<Self>, TrustError> {
        let head_path = directory.join(HEAD_FILE);
        let numbers = log_numbers(directory)?;
        let bytes = read_limited(&head_path, HEAD_BYTES as u64, ErrorCode::Storage)?.unwrap_or_default();
        let has_records = |number: &u64| fs::metadata(log_path(directory, *number)).is_ok_and(|file| file.len() > 0);
        if bytes.is_empty() && !numbers.iter().any(has_records) {
            return Ok(None);
        }
        let head = Head::parse(&bytes, &head_path, key)?;
        let size = fs::metadata(log_path(directory, head.file)).map_or(0, |file| file.len());
        Ok(Some(Self { head, numbers, size }))
    }

    fn verify(
        &self,
        directory: &Path,
        key: &HostKey,
        anchor: &ChainAnchor,
        expected: Option<RecordId>,
    ) -> Result<VerifyReport, TrustError> {
        let head = &self.head;
        let anchored = anchor.last.map(|fingerprint| RecordId {
            sequence: anchor.next.saturating_sub(1),
            fingerprint,
        });
        let mut checker = Checker::new(key.public_key(), Some(key));
        checker.chain = Some(head.chain.clone());
        checker.last = head.first_previous;
        checker.end = head.last;
        checker.has_end = head.last == head.first_previous;
        checker.expected = anchored.into_iter().chain(expected).collect();
        if head.chain != anchor.chain {
            return Ok(bad_report(directory, anchor.missing_log_problem()));
        }
        let files = (head.first_file..=head.file).map(|number| {
            let end = if number == head.file { self.size } else { u64::MAX };
            (log_path(directory, number), end)
        });
        let mut place = (log_path(directory, head.first_file), 1);
        checker.check_files(files, &mut place)?;
        let is_foreign = |number: &&u64| !(head.first_file..=head.file).contains(*number);
        if checker.report.bad.is_none()
            && let Some(number) = self.numbers.iter().find(is_foreign)
        {
            place = (log_path(directory, *number), 1);
            checker.set_bad(place, "the file is not part of the log".to_owned());
        } else if checker.report.bad.is_none() && !checker.has_end {
            checker.set_bad(place, "the end of the log was cut off".to_owned());
        } else {
            checker.check_expected(place);
        }
        Ok(checker.report)
    }
}

/// Verifies a copy without the key of its host.
fn verify_copy(directory: &Path, public_key: [u8; 32], expected: Option<RecordId>) -> Result<VerifyReport, TrustError> {
    let numbers = log_numbers(directory)?;
    let mut checker = Checker::new(public_key, None);
    checker.starts_anywhere = numbers.first().is_some_and(|first| *first > 0);
    checker.expected = expected.into_iter().collect();
    let first = numbers.first().copied().unwrap_or_default();
    let mut place = (log_path(directory, first), 1);
    if let Some(missing) = (first..).zip(&numbers).find(|(next, number)| next != *number) {
        checker.set_bad((log_path(directory, missing.0), 1), "the file is missing".to_owned());
        return Ok(checker.report);
    }
    let files = numbers.iter().map(|number| (log_path(directory, *number), u64::MAX));
    checker.check_files(files, &mut place)?;
    checker.check_expected(place);
    Ok(checker.report)
}

struct Checker<'a> {
    key: Option<&'a HostKey>,
    public_key: [u8; 32],
    authority: String,
    chain: Option<String>,
    /// The oldest records were removed, and the fingerprint before the first one is not known.
    starts_anywhere: bool,
    last: Option<Digest>,
    /// The last record that the authenticated head has.
    end: Option<Digest>,
    has_end: bool,
    /// Records that the log must have.
    expected: Vec<RecordId>,
    first: Option<u64>,
    next: Option<u64>,
    since_checkpoint: u32,
    report: VerifyReport,
}

impl<'a> Checker<'a> {
    fn new(public_key: [u8; 32], key: Option<&'a HostKey>) -> Self {
        Self {
            key,
            public_key,
            authority: public_key_id(&public_key),
            chain: None,
            starts_anywhere: false,
            last: None,
            end: None,
            has_end: false,
            expected: Vec::new(),
            first: None,
            next: None,
            since_checkpoint: 0,
            report: VerifyReport {
                tags_checked: key.is_some(),
                ..VerifyReport::default()
            },
        }
    }

    /// Checks the lines of these files, up to the first bad one. `place` is where the next record would be.
    fn check_files(
        &mut self,
        files: impl Iterator<Item = (PathBuf, u64)>,
        place: &mut (PathBuf, u64),
    ) -> Result<(), TrustError> {
        for (path, end) in files {
            let mut line_number = 0;
            visit_lines_before(&path, 0, end, |line, is_complete| {
                line_number += 1;
                let problem = if is_complete {
                    self.check(line)
                } else {
                    Some("it is incomplete".to_owned())
                };
                if let Some(problem) = problem {
                    self.set_bad((path.clone(), line_number), problem);
                }
                Ok(self.report.bad.is_none())
            })?;
            if self.report.bad.is_some() {
                return Ok(());
            }
            if line_number > 0 {
                *place = (path, line_number + 1);
            }
        }
        Ok(())
    }

    fn set_bad(&mut self, (file, line): (PathBuf, u64), problem: String) {
        self.report.bad = Some(BadRecord { file, line, problem });
    }

    /// Checks that the log has every record that it must have.
    fn check_expected(&mut self, place: (PathBuf, u64)) {
        let (first, next) = (self.first.unwrap_or_default(), self.next.unwrap_or_default());
        let is_checked = |expected: &&RecordId| (first..next).contains(&expected.sequence);
        if self.report.bad.is_none()
            && let Some(expected) = self.expected.iter().find(|expected| !is_checked(expected))
        {
            let problem = match expected.sequence < first {
                true => format!("the record {} was removed with the oldest files", expected.sequence),
                false => format!(
                    "it is an earlier copy: the log had the record {}, and ends before it",
                    expected.sequence
                ),
            };
            self.set_bad(place, problem);
        }
    }

    /// Checks the next record; returns what is wrong.
    fn check(&mut self, line: &[u8]) -> Option<String> {
        let record = match check_line(line) {
            Ok(record) => record,
            Err(problem) => return Some(problem.to_owned()),
        };
        let chain = self.chain.get_or_insert_with(|| record.chain.to_owned());
        if record.authority != self.authority || record.chain != *chain {
            return Some("it belongs to another log".to_owned());
        }
        let is_first = self.next.is_none();
        let follows = record.previous == self.last || (is_first && self.starts_anywhere);
        if !follows || self.next.is_some_and(|next| next != record.sequence) {
            return Some(
                "it does not follow the record before it: records were removed, inserted, repeated or reordered, or \
                 an earlier copy of the log was restored"
                    .to_owned(),
            );
        }
        if self.key.is_some_and(|key| !record.has_tag_of(key)) {
            return Some("its tag is not valid: no process of this host wrote it".to_owned());
        }
        self.since_checkpoint += 1;
        self.report.after_checkpoint += 1;
        if let Some(signature) = record.signature {
            let key = UnparsedPublicKey::new(&ED25519, &self.public_key);
            if key.verify(record.fingerprint.as_bytes(), &signature).is_err() {
                return Some("its signature is not valid".to_owned());
            }
            self.report.checkpoints += 1;
            self.report.after_checkpoint = 0;
            self.since_checkpoint = 0;
        }
        if self.since_checkpoint > CHECKPOINT_RECORDS {
            return Some("the checkpoint before it is missing".to_owned());
        }
        let id = RecordId {
            sequence: record.sequence,
            fingerprint: record.fingerprint,
        };
        let is_other = |expected: &RecordId| expected.sequence == id.sequence && *expected != id;
        if self.expected.iter().any(is_other) {
            return Some("it is not the record that the log had at this place".to_owned());
        }
        self.has_end |= self.end == Some(record.fingerprint);
        self.last = Some(record.fingerprint);
        self.first.get_or_insert(record.sequence);
        self.next = Some(record.sequence + 1);
        self.report.last = Some(id);
        self.report.records += 1;
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{AuditEvent, AuditLog, AuditSettings, Caller, ManagedEntity, ManagementActivity};

    #[test]
    fn writers_go_on_during_a_verification() {
        let directory = tempfile::tempdir().unwrap();
        let key = Arc::new(HostKey::open(directory.path()).unwrap());
        let settings = AuditSettings {
            lock_timeout: std::time::Duration::from_millis(20),
            ..AuditSettings::default()
        };
        let log = AuditLog::open(directory.path(), Arc::clone(&key), settings).unwrap();
        let entity = ManagedEntity {
            kind: "secret",
            name: "EXAMPLE".to_owned(),
            uid: None,
        };
        let used = AuditEvent::Managed(ManagementActivity::Read, &entity, "used");
        log.append(&Caller::default(), &used).unwrap();

        let audit_dir = directory.path().join("audit");
        let captured = CapturedLog::read(&audit_dir, &key).unwrap().unwrap();
        let anchor = ChainAnchor::read(&ChainAnchor::path(directory.path()), &key)
            .unwrap()
            .unwrap();
        for _ in 0..100 {
            log.append(&Caller::default(), &used).unwrap();
        }
        let report = captured.verify(&audit_dir, &key, &anchor, None).unwrap();
        assert_eq!((report.bad, report.records), (None, 1));
        let report = verify_log(directory.path(), &key).unwrap();
        assert_eq!((report.bad, report.records), (None, 101));
    }
}
