//! Attacks on the log by somebody who can write its files and does not have the host key.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use skillbox_trust::{
    AuditLog, AuditSettings, HostKey, LogKey, RecordId, TrustError, VerifyReport, public_key_path, read_public_key,
    verify_log, verify_log_with,
};

use crate::audit_log::{caller, end, open, run};
use crate::fixture::sha256;

fn write_runs(trust_dir: &Path, prefix: &str, count: usize) {
    let log = open(trust_dir, AuditSettings::default());
    for number in 0..count {
        let started = log.start_run(&caller(), &run(&format!("{prefix}-{number}"))).unwrap();
        log.end_run(started, &end()).unwrap();
    }
}

fn verify(trust_dir: &Path) -> VerifyReport {
    verify_log(trust_dir, &HostKey::open(trust_dir).unwrap()).unwrap()
}

fn try_open(trust_dir: &Path) -> Result<AuditLog, TrustError> {
    let key = Arc::new(HostKey::open(trust_dir).unwrap());
    let log = AuditLog::open(trust_dir, key, AuditSettings::default())?;
    let started = log.start_run(&caller(), &run("after"))?;
    log.end_run(started, &end())?;
    Ok(log)
}

fn log_file(trust_dir: &Path) -> PathBuf {
    trust_dir.join("audit/log-00000000.jsonl")
}

fn last_line(trust_dir: &Path) -> String {
    let text = fs::read_to_string(log_file(trust_dir)).unwrap();
    text.lines().next_back().unwrap().to_owned()
}

/// A record that follows `line`, well-formed in everything that needs no key. It keeps the tags of `line`.
fn forged_after(line: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut record: Value = serde_json::from_str(line).unwrap();
    let next = record["metadata"]["sequence"].as_u64().unwrap() + 1;
    record["metadata"]["sequence"] = next.into();
    record["process"]["uid"] = "forged".into();
    let attestation = record["attestation_list"][0].as_object_mut().unwrap();
    let fingerprint = attestation.remove("fingerprint").unwrap();
    let signatures = attestation.remove("signatures");
    attestation.insert("prev_event".to_owned(), json!({"fingerprint": fingerprint}));
    change(&mut record);
    let canonical = serde_json_canonicalizer::to_string(&record).unwrap();
    let attestation = &mut record["attestation_list"][0];
    attestation["fingerprint"] = fingerprint;
    attestation["fingerprint"]["value"] = sha256(canonical.as_bytes()).hex().into();
    if let Some(signatures) = signatures {
        attestation["signatures"] = signatures;
    }
    serde_json_canonicalizer::to_string(&record).unwrap() + "\n"
}

fn append(trust_dir: &Path, bytes: &str) {
    let mut text = fs::read_to_string(log_file(trust_dir)).unwrap();
    text.push_str(bytes);
    fs::write(log_file(trust_dir), text).unwrap();
}

#[test]
fn a_record_without_the_key_is_never_adopted() {
    type Change = fn(&mut Value);
    let changes: [(&str, Change); 4] = [
        ("plain", |_| {}),
        ("without tag", |record| {
            record["attestation_list"][0]
                .as_object_mut()
                .unwrap()
                .remove("signatures");
        }),
        ("other authority", |record| {
            record["attestation_list"][0]["authority_uid"] = "0000000000000000".into();
        }),
        ("other sequence", |record| record["metadata"]["sequence"] = 77.into()),
    ];
    for (name, change) in changes {
        let directory = tempfile::tempdir().unwrap();
        let trust_dir = directory.path();
        write_runs(trust_dir, "run", 2);
        assert_eq!(verify(trust_dir).bad, None, "{name}: the control");
        append(trust_dir, &forged_after(&last_line(trust_dir), change));
        let bad = verify(trust_dir).bad.unwrap_or_else(|| panic!("{name}: forged"));
        assert_eq!(bad.line, 5, "{name}");
        assert!(
            try_open(trust_dir).is_err(),
            "{name}: a run went on after the forged record"
        );
        assert_eq!(verify(trust_dir).bad.map(|bad| bad.line), Some(5), "{name}: adopted");
    }
}

/// The control of the test above: what a process that died really wrote is adopted.
#[test]
fn a_record_that_the_head_lacks_is_adopted_with_its_tag() {
    let directory = tempfile::tempdir().unwrap();
    let trust_dir = directory.path();
    write_runs(trust_dir, "run", 2);
    let head = fs::read(trust_dir.join("audit/head")).unwrap();
    write_runs(trust_dir, "late", 1);
    fs::write(trust_dir.join("audit/head"), head).unwrap();
    assert_eq!(verify(trust_dir).bad, None, "records with tags beyond the head");
    drop(try_open(trust_dir).unwrap());
    let report = verify(trust_dir);
    assert_eq!((report.bad, report.records), (None, 8));
}

#[test]
fn a_removed_log_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let trust_dir = directory.path();
    assert_eq!(verify(trust_dir).bad, None, "the control: there never was a log");
    write_runs(trust_dir, "run", 2);
    fs::remove_dir_all(trust_dir.join("audit")).unwrap();
    let bad = verify(trust_dir).bad.expect("the log is missing");
    assert!(bad.problem.contains("missing"), "{bad:?}");
    let error = try_open(trust_dir).expect_err("a second log was started").to_string();
    assert!(error.contains("missing"), "{error}");
    assert!(verify(trust_dir).bad.is_some());
}

#[test]
fn an_earlier_copy_of_the_log_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let trust_dir = directory.path();
    // The first record is a checkpoint, and so is every 64th.
    write_runs(trust_dir, "run", 5);
    let head = fs::read(trust_dir.join("audit/head")).unwrap();
    let log = fs::read(log_file(trust_dir)).unwrap();
    write_runs(trust_dir, "hidden", 40);
    assert_eq!(verify(trust_dir).bad, None, "the control");
    fs::write(trust_dir.join("audit/head"), head).unwrap();
    fs::write(log_file(trust_dir), log).unwrap();
    let bad = verify(trust_dir).bad.expect("the log was rolled back");
    assert!(bad.problem.contains("earlier"), "{bad:?}");
    // New records do not hide it.
    write_runs(trust_dir, "after", 70);
    assert_eq!(verify(trust_dir).bad.map(|bad| bad.line), Some(11));
}

/// Somebody who can restore every file of the trust directory needs a record that was kept elsewhere.
#[test]
fn a_record_kept_elsewhere_finds_an_earlier_copy_of_everything() {
    let directory = tempfile::tempdir().unwrap();
    let trust_dir = directory.path();
    write_runs(trust_dir, "run", 2);
    let files = [
        log_file(trust_dir),
        trust_dir.join("audit/head"),
        trust_dir.join("audit.chain"),
    ];
    let copies = files.each_ref().map(|file| fs::read(file).unwrap());
    write_runs(trust_dir, "hidden", 2);
    let expected = verify(trust_dir).last.unwrap();
    let key = HostKey::open(trust_dir).unwrap();
    let check = |expected| {
        verify_log_with(trust_dir, LogKey::Host(&key), Some(expected))
            .unwrap()
            .bad
    };
    assert_eq!(check(expected), None, "the control");
    assert_eq!(expected.to_string().parse::<RecordId>().unwrap(), expected);
    for (file, copy) in files.iter().zip(&copies) {
        fs::write(file, copy).unwrap();
    }
    assert_eq!(verify(trust_dir).bad, None, "the files alone do not tell");
    assert!(check(expected).unwrap().problem.contains("earlier"));
    write_runs(trust_dir, "other", 2);
    assert_eq!(check(expected).unwrap().line, 8, "another record has its place");
    fs::remove_dir_all(trust_dir.join("audit")).unwrap();
    fs::remove_file(trust_dir.join("audit.chain")).unwrap();
    assert_eq!(verify(trust_dir).bad, None, "the files alone do not tell");
    assert!(check(expected).is_some());
    for text in ["", "1", "1:00", "x:00"] {
        assert!(text.parse::<RecordId>().is_err(), "{text}");
    }
}

#[test]
fn the_anchor_belongs_to_the_log() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let trust_dir = here.path();
    for directory in [trust_dir, there.path()] {
        write_runs(directory, "run", 2);
    }
    let anchor = trust_dir.join("audit.chain");
    let original = fs::read(&anchor).unwrap();
    fs::remove_file(&anchor).unwrap();
    assert!(verify(trust_dir).bad.unwrap().problem.contains("missing"));
    assert!(try_open(trust_dir).is_err(), "removed");
    fs::copy(there.path().join("audit.chain"), &anchor).unwrap();
    assert!(try_open(trust_dir).is_err(), "of another host");
    fs::write(&anchor, &original).unwrap();
    assert_eq!(verify(trust_dir).bad, None, "the control");

    // A second log of the same host does not replace the first one.
    fs::rename(trust_dir.join("audit"), trust_dir.join("first")).unwrap();
    fs::remove_file(&anchor).unwrap();
    write_runs(trust_dir, "second", 2);
    fs::write(&anchor, &original).unwrap();
    assert!(verify(trust_dir).bad.unwrap().problem.contains("missing"));
    assert!(try_open(trust_dir).is_err(), "another chain");
}

#[test]
fn a_copy_verifies_with_the_public_key_alone() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write_runs(here.path(), "run", 40);
    let copy = there.path();
    fs::create_dir(copy.join("audit")).unwrap();
    fs::copy(log_file(here.path()), log_file(copy)).unwrap();
    let public_key = read_public_key(&public_key_path(here.path())).unwrap();
    let check = |key, expected| verify_log_with(copy, LogKey::Public(key), expected).unwrap();
    let report = check(public_key, None);
    assert_eq!((&report.bad, report.records, report.tags_checked), (&None, 80, false));
    // The first record and the 65th are checkpoints.
    assert_eq!((report.checkpoints, report.after_checkpoint), (2, 15));
    assert!(check([7; 32], None).bad.is_some(), "another key");
    assert!(verify(here.path()).tags_checked);

    let text = fs::read_to_string(log_file(copy)).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let first_bad = |lines: &[&str]| {
        fs::write(log_file(copy), lines.join("\n") + "\n").unwrap();
        check(public_key, report.last).bad.map(|bad| bad.line)
    };
    assert_eq!(first_bad(&lines), None, "the control");
    assert_eq!(first_bad(&lines[1..]), Some(1), "the first removed");
    assert_eq!(first_bad(&lines[..70]), Some(71), "the end cut off");
    let edited = lines[41].replace("\"exit\"", "\"signal\"");
    assert_eq!(
        first_bad(&[&lines[..41], &[&*edited], &lines[42..]].concat()),
        Some(42),
        "edited"
    );
}

#[test]
fn an_end_waits_for_a_lock_that_refuses_a_start() {
    let directory = tempfile::tempdir().unwrap();
    let trust_dir = directory.path();
    let settings = AuditSettings {
        lock_timeout: Duration::from_millis(20),
        ..AuditSettings::default()
    };
    let (log, other) = (open(trust_dir, settings.clone()), open(trust_dir, settings));
    let started = log.start_run(&caller(), &run("run-0")).unwrap();
    let lock = fs::File::open(trust_dir.join("audit/lock")).unwrap();
    lock.lock_shared().unwrap();
    std::thread::scope(|scope| {
        let ending = scope.spawn(|| log.end_run(started, &end()));
        for _ in 0..3 {
            let error = other.start_run(&caller(), &run("run-1")).expect_err("the control");
            assert!(matches!(error, TrustError::Locked { .. }), "{error}");
        }
        lock.unlock().unwrap();
        ending.join().unwrap().unwrap();
    });
    assert_eq!(verify(trust_dir).records, 2);
}
