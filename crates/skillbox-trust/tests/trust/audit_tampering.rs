//! Every change of a log is found, with the first bad record.

use std::fs;
use std::path::{Path, PathBuf};

use skillbox_trust::{AuditSettings, HostKey, verify_log};

use crate::audit_log::{caller, end, open, run};

struct WrittenLog {
    directory: tempfile::TempDir,
    key: HostKey,
    file: PathBuf,
    lines: Vec<String>,
}

fn write_log() -> WrittenLog {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), AuditSettings::default());
    for number in 0..5 {
        let started = log.start_run(&caller(), &run(&format!("run-{number}"))).unwrap();
        log.end_run(started, &end()).unwrap();
    }
    let file = directory.path().join("audit/log-00000000.jsonl");
    let lines: Vec<String> = fs::read_to_string(&file).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 10);
    WrittenLog {
        key: HostKey::open(directory.path()).unwrap(),
        directory,
        file,
        lines,
    }
}

impl WrittenLog {
    /// The line of the first bad record, when the file has these lines.
    fn first_bad(&self, lines: &[String]) -> Option<u64> {
        fs::write(
            &self.file,
            lines.iter().map(|line| format!("{line}\n")).collect::<String>(),
        )
        .unwrap();
        self.verify()
    }

    fn verify(&self) -> Option<u64> {
        verify_log(self.directory.path(), &self.key)
            .unwrap()
            .bad
            .map(|bad| bad.line)
    }
}

#[test]
fn removed_repeated_reordered_inserted_and_cut_records_are_found() {
    let log = write_log();
    assert_eq!(log.first_bad(&log.lines), None, "the control");
    let change = |change: &dyn Fn(&mut Vec<String>)| {
        let mut lines = log.lines.clone();
        change(&mut lines);
        log.first_bad(&lines)
    };
    assert_eq!(change(&|lines| drop(lines.remove(3))), Some(4), "removed");
    assert_eq!(change(&|lines| drop(lines.remove(0))), Some(1), "the first removed");
    assert_eq!(change(&|lines| lines.insert(4, lines[3].clone())), Some(5), "repeated");
    assert_eq!(change(&|lines| lines.swap(5, 6)), Some(6), "reordered");
    assert_eq!(change(&|lines| lines.insert(2, "{}".to_owned())), Some(3), "inserted");
    assert_eq!(change(&|lines| lines.truncate(8)), Some(9), "cut off at the end");
    assert_eq!(change(&|lines| lines.clear()), Some(1), "emptied");
    assert_eq!(
        change(&|lines| lines[7] = lines[7].replace("\"exit\"", "\"signal\"")),
        Some(8),
        "edited"
    );
    assert_eq!(
        change(&|lines| lines[7] = lines[7].replace(":{", ": {")),
        Some(8),
        "formatted"
    );
    assert_eq!(log.first_bad(&log.lines), None, "the control again");

    let content = fs::read(&log.file).unwrap();
    fs::write(&log.file, &content[..content.len() - 5]).unwrap();
    assert_eq!(log.verify(), Some(10), "cut within a record");
    fs::remove_file(&log.file).unwrap();
    assert_eq!(log.verify(), Some(1), "the file removed");
}

#[test]
fn every_changed_byte_is_found() {
    let log = write_log();
    let content = fs::read(&log.file).unwrap();
    for position in (0..content.len()).step_by(3) {
        let mut changed = content.clone();
        changed[position] ^= 1;
        fs::write(&log.file, &changed).unwrap();
        let line = 1 + content[..position].iter().filter(|byte| **byte == b'\n').count() as u64;
        assert_eq!(log.verify(), Some(line), "byte {position}");
    }
}

#[test]
fn a_log_of_another_host_and_a_changed_head_are_found() {
    let (log, other) = (write_log(), write_log());
    fs::copy(&other.file, &log.file).unwrap();
    assert_eq!(log.verify(), Some(1), "another log");
    assert_eq!(log.first_bad(&log.lines), None, "the control");

    let head = log.directory.path().join("audit/head");
    let original = fs::read(&head).unwrap();
    for position in 0..original.iter().rposition(|byte| *byte != b' ').unwrap() {
        let mut changed = original.clone();
        changed[position] ^= 1;
        fs::write(&head, &changed).unwrap();
        assert!(verify_log(log.directory.path(), &log.key).is_err(), "byte {position}");
    }
    fs::write(&head, &original).unwrap();
    assert_eq!(log.verify(), None, "the control again");

    fs::remove_file(&head).unwrap();
    assert!(verify_log(log.directory.path(), &log.key).is_err(), "no head");
    let settings = AuditSettings::default();
    let reopened = skillbox_trust::AuditLog::open(log.directory.path(), log_key(log.directory.path()), settings);
    assert!(reopened.is_err(), "no second log is started beside the first");
}

fn log_key(trust_dir: &Path) -> std::sync::Arc<HostKey> {
    std::sync::Arc::new(HostKey::open(trust_dir).unwrap())
}
