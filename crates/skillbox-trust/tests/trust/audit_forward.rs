//! Forwarding the audit log: order, the durable cursor, missing records, and a log that waits for its receiver.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use skillbox_model::ErrorCode;
use skillbox_trust::{
    AuditForward, AuditLog, AuditSettings, BatchLimit, ForwardBatch, HostKey, MissingRecords, TrustError,
    forward_status, verify_log,
};

use crate::audit_log::{caller, end, open, run};

const LIMIT: BatchLimit = BatchLimit {
    records: 3,
    bytes: 1 << 20,
};

fn key(trust_dir: &Path) -> Arc<HostKey> {
    Arc::new(HostKey::open(trust_dir).unwrap())
}

fn forward(trust_dir: &Path) -> AuditForward {
    AuditForward::open(trust_dir, key(trust_dir)).unwrap().unwrap()
}

fn sequences(batch: &ForwardBatch) -> Vec<u64> {
    let sequence = |line: &String| {
        serde_json::from_str::<Value>(line).unwrap()["metadata"]["sequence"]
            .as_u64()
            .unwrap()
    };
    batch.records.iter().map(sequence).collect()
}

/// Forwards everything and returns the sequence numbers.
fn drain(forward: &mut AuditForward) -> Vec<u64> {
    let mut all = Vec::new();
    while let Some(batch) = forward.next_batch(LIMIT).unwrap() {
        assert_eq!(batch.missing, None);
        all.extend(sequences(&batch));
        forward.confirm(batch).unwrap();
    }
    all
}

fn append_runs(log: &AuditLog, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let started = log.start_run(&caller(), &run(&format!("run-{number}"))).unwrap();
        log.end_run(started, &end()).unwrap();
    }
}

/// A log whose files have few records each.
fn small_files(is_forwarded: bool) -> AuditSettings {
    AuditSettings {
        max_file_bytes: 4_000,
        max_files: 3,
        is_forwarded,
        ..AuditSettings::default()
    }
}

#[test]
fn every_record_is_forwarded_once_and_in_order_across_restarts() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), small_files(true));
    append_runs(&log, 0..4);
    let mut first = forward(directory.path());
    assert!(
        AuditForward::open(directory.path(), key(directory.path()))
            .unwrap()
            .is_none(),
        "one process forwards at a time"
    );
    let batch = first.next_batch(LIMIT).unwrap().unwrap();
    assert_eq!(sequences(&batch), [0, 1, 2]);
    first.confirm(batch).unwrap();
    // The receiver got this batch, but the process dies before it can confirm it.
    let unconfirmed = first.next_batch(LIMIT).unwrap().unwrap();
    assert_eq!(sequences(&unconfirmed), [3, 4, 5]);
    drop(first);
    assert_eq!(
        forward_status(directory.path(), &key(directory.path()))
            .unwrap()
            .pending,
        5
    );
    let mut second = forward(directory.path());
    assert_eq!(drain(&mut second), [3, 4, 5, 6, 7]);
    append_runs(&log, 4..5);
    assert_eq!(drain(&mut second), [8, 9]);
    assert_eq!(
        forward_status(directory.path(), &key(directory.path()))
            .unwrap()
            .pending,
        0
    );
}

#[test]
fn a_large_record_is_a_batch_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), AuditSettings::default());
    append_runs(&log, 0..2);
    let mut forward = forward(directory.path());
    let mut batches = Vec::new();
    let limit = BatchLimit { records: 100, bytes: 1 };
    while let Some(batch) = forward.next_batch(limit).unwrap() {
        batches.push(sequences(&batch));
        forward.confirm(batch).unwrap();
    }
    assert_eq!(batches, [[0], [1], [2], [3]]);
}

#[test]
fn a_full_log_waits_for_its_receiver_and_refuses_runs() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), small_files(true));
    let mut started = 0;
    let refused = loop {
        match log.start_run(&caller(), &run(&format!("run-{started}"))) {
            Ok(run) => log.end_run(run, &end()).unwrap(),
            Err(error) => break error,
        }
        started += 1;
        assert!(started < 1_000, "the log has a limit");
    };
    assert!(matches!(refused, TrustError::NotForwarded { .. }), "{refused}");
    assert_eq!(refused.code(), ErrorCode::Storage);
    assert!(refused.to_string().contains("skillbox audit status"), "{refused}");
    let all: Vec<u64> = (0..2 * started).collect();
    assert_eq!(drain(&mut forward(directory.path())), all, "nothing was lost");
    append_runs(&log, 1_000..1_002);
    let report = verify_log(directory.path(), &key(directory.path())).unwrap();
    assert_eq!(report.bad, None);

    let endless = tempfile::tempdir().unwrap();
    let log = open(endless.path(), small_files(false));
    append_runs(&log, 0..200);
    assert!(
        fs::read_dir(endless.path().join("audit")).unwrap().count() < 12,
        "the control"
    );
}

#[test]
fn missing_records_are_counted_and_reported() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), small_files(false));
    append_runs(&log, 0..1);
    assert_eq!(drain(&mut forward(directory.path())), [0, 1]);
    append_runs(&log, 1..60);
    let mut forward = forward(directory.path());
    let batch = forward.next_batch(LIMIT).unwrap().unwrap();
    let found = sequences(&batch)[0];
    let count = Some(found - 2);
    assert_eq!(batch.missing, Some(MissingRecords { first: 2, count }));
    forward.confirm(batch).unwrap();
    let status = forward_status(directory.path(), &key(directory.path())).unwrap();
    assert_eq!((Some(status.missing), status.problem), (count, None));
    assert!(drain(&mut forward).ends_with(&[118, 119]));
}

#[test]
fn a_log_that_was_replaced_is_reported_and_forwarded_from_its_start() {
    let directory = tempfile::tempdir().unwrap();
    append_runs(&open(directory.path(), AuditSettings::default()), 0..2);
    assert_eq!(drain(&mut forward(directory.path())).len(), 4);
    for name in ["audit/head", "audit/log-00000000.jsonl", "audit.chain"] {
        fs::remove_file(directory.path().join(name)).unwrap();
    }
    append_runs(&open(directory.path(), AuditSettings::default()), 0..1);
    let batch = forward(directory.path()).next_batch(LIMIT).unwrap().unwrap();
    assert_eq!(batch.missing, Some(MissingRecords { first: 4, count: None }));
    assert_eq!(sequences(&batch), [0, 1]);
}

#[test]
fn a_problem_is_kept_until_it_is_solved() {
    let directory = tempfile::tempdir().unwrap();
    append_runs(&open(directory.path(), AuditSettings::default()), 0..1);
    let mut forward = forward(directory.path());
    assert!(forward.report_problem("connection refused").unwrap());
    assert!(!forward.report_problem("connection reset").unwrap());
    let status = forward_status(directory.path(), &key(directory.path())).unwrap();
    assert_eq!(status.pending, 2);
    assert_eq!(status.problem.unwrap().message, "connection reset");
    assert!(forward.clear_problem().unwrap() && !forward.clear_problem().unwrap());
    assert_eq!(
        forward_status(directory.path(), &key(directory.path()))
            .unwrap()
            .problem,
        None
    );
}

#[test]
fn a_damaged_cursor_or_line_stops_the_forwarding() {
    let directory = tempfile::tempdir().unwrap();
    append_runs(&open(directory.path(), AuditSettings::default()), 0..1);
    let log = directory.path().join("audit/log-00000000.jsonl");
    let text = fs::read(&log).unwrap();
    fs::write(&log, [b"x", &text[1..]].concat()).unwrap();
    let error = forward(directory.path()).next_batch(LIMIT).unwrap_err();
    assert!(error.to_string().contains("audit verify"), "{error}");
    fs::write(directory.path().join("audit/forwarded"), "{").unwrap();
    let error = AuditForward::open(directory.path(), key(directory.path())).unwrap_err();
    assert!(error.to_string().contains("forwarded"), "{error}");
}
