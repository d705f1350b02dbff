//! Verifies a log: every fingerprint, every link of the chain, every checkpoint, and the end.

use std::path::{Path, PathBuf};

use ring::signature::{ED25519, UnparsedPublicKey};
use rustix::fs::FlockOperation;
use serde::Serialize;
use skillbox_model::{Digest, ErrorCode};

use super::attestation::check_line;
use super::head::{HEAD_BYTES, HEAD_FILE, Head};
use super::log::CHECKPOINT_RECORDS;
use super::log_files::{FileLock, log_numbers, log_path, open_private, visit_lines};
use crate::host_key::public_key_id;
use crate::private_file::read_limited;
use crate::{HostKey, TrustError};

/// What a verification found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    /// Records that were checked and are valid.
    pub records: u64,
    /// Signatures that were checked and are valid.
    pub checkpoints: u64,
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

/// Verifies the log of a trust directory. Writers wait meanwhile.
pub fn verify_log(trust_dir: &Path, key: &HostKey) -> Result<VerifyReport, TrustError> {
    let directory = trust_dir.join("audit");
    let lock_path = directory.join("lock");
    let lock_file = open_private(&lock_path, false)?;
    let _lock = FileLock::acquire(&lock_file, &lock_path, FlockOperation::NonBlockingLockShared)?;
    let head_path = directory.join(HEAD_FILE);
    let numbers = log_numbers(&directory)?;
    let head = match read_limited(&head_path, HEAD_BYTES as u64, ErrorCode::Storage)? {
        None if numbers.is_empty() => return Ok(VerifyReport::default()),
        bytes => Head::parse(&bytes.unwrap_or_default(), &head_path, key)?,
    };
    let mut checker = Checker {
        public_key: key.public_key(),
        authority: public_key_id(&key.public_key()),
        chain: head.chain.clone(),
        last: head.first_previous,
        since_checkpoint: 0,
        report: VerifyReport::default(),
    };
    let mut place = (log_path(&directory, head.first_file), 1);
    for number in head.first_file..=head.file {
        let path = log_path(&directory, number);
        let mut line_number = 0;
        visit_lines(&path, 0, |line, is_complete| {
            line_number += 1;
            let problem = if is_complete {
                checker.check(line)
            } else {
                Some("it is incomplete".to_owned())
            };
            checker.report.bad = problem.map(|problem| BadRecord {
                file: path.clone(),
                line: line_number,
                problem,
            });
            Ok(checker.report.bad.is_none())
        })?;
        if checker.report.bad.is_some() {
            return Ok(checker.report);
        }
        if line_number > 0 {
            place = (path, line_number + 1);
        }
    }
    let foreign = numbers
        .iter()
        .find(|number| !(head.first_file..=head.file).contains(*number));
    checker.report.bad = if let Some(number) = foreign {
        Some(BadRecord {
            file: log_path(&directory, *number),
            line: 1,
            problem: "the file is not part of the log".to_owned(),
        })
    } else if checker.last != head.last {
        Some(BadRecord {
            file: place.0,
            line: place.1,
            problem: "the end of the log was cut off, or records were added to it".to_owned(),
        })
    } else {
        None
    };
    Ok(checker.report)
}

struct Checker {
    public_key: [u8; 32],
    authority: String,
    chain: String,
    last: Option<Digest>,
    since_checkpoint: u32,
    report: VerifyReport,
}

impl Checker {
    /// Checks the next record; returns what is wrong.
    fn check(&mut self, line: &[u8]) -> Option<String> {
        let record = match check_line(line) {
            Ok(record) => record,
            Err(problem) => return Some(problem.to_owned()),
        };
        if record.authority != self.authority || record.chain != self.chain {
            return Some("it belongs to another log".to_owned());
        }
        if record.previous != self.last {
            return Some(
                "it does not follow the record before it: records were removed, inserted, repeated or reordered"
                    .to_owned(),
            );
        }
        self.since_checkpoint += 1;
        if let Some(signature) = record.signature {
            let key = UnparsedPublicKey::new(&ED25519, &self.public_key);
            if key.verify(record.fingerprint.as_bytes(), &signature).is_err() {
                return Some("its signature is not valid".to_owned());
            }
            self.report.checkpoints += 1;
            self.since_checkpoint = 0;
        }
        if self.since_checkpoint > CHECKPOINT_RECORDS {
            return Some("the checkpoint before it is missing".to_owned());
        }
        self.last = Some(record.fingerprint);
        self.report.records += 1;
        None
    }
}
