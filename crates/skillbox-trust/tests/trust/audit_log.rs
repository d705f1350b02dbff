//! Writing the audit log: several writers, dead processes, rotation, cost, and what a record has.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;
use skillbox_model::{ErrorCode, ProfileName, RunId};
use skillbox_trust::{
    AuditEvent, AuditLog, AuditMode, AuditSettings, Caller, ExportFormat, FileDigest, HostKey, ManagedEntity,
    ManagementActivity, RequestFacts, RunDescription, RunEnd, export_records, verify_log,
};

use crate::fixture::{manifest, network, sha256, skill_name};

pub fn open(trust_dir: &Path, settings: AuditSettings) -> AuditLog {
    AuditLog::open(trust_dir, Arc::new(HostKey::open(trust_dir).unwrap()), settings).unwrap()
}

pub fn run(id: &str) -> RunDescription {
    RunDescription {
        run_id: RunId::parse(id).unwrap(),
        request_id: Some("request-1".to_owned()),
        skill: Some(skill_name("report")),
        digest: Some(manifest(&[("SKILL.md", "text")]).digest()),
        approved_by: Some("alice".to_owned()),
        command: "python3 scripts/report.py --out \"$OUTPUT_DIR/r.csv\"".to_owned(),
        profile: ProfileName::parse("default").unwrap(),
        profile_digest: Some(sha256(b"profile")),
        limits: None,
        environment: None,
        grants: network(&["api.example.com"]),
        secrets: std::collections::BTreeMap::new(),
        inputs: vec![FileDigest {
            name: "work/inputs/a.csv".to_owned(),
            sha256: Some(sha256(b"a")),
        }],
        request: RequestFacts::default(),
    }
}

pub fn end() -> RunEnd {
    RunEnd {
        ended_by: "exit".to_owned(),
        exit_code: Some(0),
        duration_ms: 3,
        tier: "full".to_owned(),
        ..RunEnd::default()
    }
}

pub fn caller() -> Caller {
    Caller {
        user: "svc".to_owned(),
        tenant: Some("team-a".to_owned()),
        token_name: Some("ci".to_owned()),
    }
}

fn records(trust_dir: &Path) -> Vec<Value> {
    let mut output = Vec::new();
    export_records(trust_dir, ExportFormat::Ocsf, 0, &mut output).unwrap();
    let lines = output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

#[test]
fn a_record_has_the_fields_of_its_class() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), AuditSettings::default());
    let started = log.start_run(&caller(), &run("run-1")).unwrap();
    log.end_run(started, &end()).unwrap();
    let denied = AuditEvent::RunDenied(&run("run-2"), ErrorCode::NotApproved, "this version is not approved");
    log.append(&caller(), &denied).unwrap();
    let approval = ManagedEntity {
        kind: "approval",
        name: "report".to_owned(),
        uid: Some("sha256:00".to_owned()),
    };
    log.append(
        &caller(),
        &AuditEvent::Managed(ManagementActivity::Create, &approval, "approved"),
    )
    .unwrap();

    let records = records(directory.path());
    let base = [
        "activity_id",
        "category_uid",
        "class_uid",
        "metadata",
        "severity_id",
        "time",
        "type_uid",
        "actor",
        "device",
    ];
    for (sequence, record) in records.iter().enumerate() {
        for key in base {
            assert!(!record[key].is_null(), "{key}: {record}");
        }
        assert_eq!(record["metadata"]["sequence"], sequence);
        assert_eq!(record["metadata"]["version"], "1.9.0");
        assert_eq!(record["attestation_list"][0]["fingerprint"]["algorithm_id"], 3);
        let previous = &record["attestation_list"][0]["prev_event"]["fingerprint"]["value"];
        let before = sequence
            .checked_sub(1)
            .map(|before| &records[before]["attestation_list"][0]["fingerprint"]["value"]);
        assert_eq!(previous, before.unwrap_or(&Value::Null));
        // Another implementation of RFC 8785 gets the same bytes, and so the same fingerprint.
        let mut without = record.clone();
        let attestation = without["attestation_list"][0].as_object_mut().unwrap();
        attestation.remove("signatures");
        let fingerprint = attestation.remove("fingerprint").unwrap();
        let canonical = serde_json_canonicalizer::to_string(&without).unwrap();
        assert_eq!(fingerprint["value"], sha256(canonical.as_bytes()).hex());
    }
    let types: Vec<u64> = records
        .iter()
        .map(|record| record["type_uid"].as_u64().unwrap())
        .collect();
    assert_eq!(types, [100_701, 100_702, 100_701, 300_401]);
    assert_eq!(records[0]["unmapped"]["grants"]["network"][0], "api.example.com:443");
    assert_eq!(records[0]["actor"]["user"]["org"]["name"], "team-a");
    assert_eq!(records[2]["status_code"], "not_approved");
    assert!(
        verify_log(directory.path(), &HostKey::open(directory.path()).unwrap())
            .unwrap()
            .bad
            .is_none()
    );

    let mut csv = Vec::new();
    let mut formula = run("run-3");
    formula.command = "=1+1,\"x\"".to_owned();
    log.append(&caller(), &AuditEvent::RunDenied(&formula, ErrorCode::Denied, ""))
        .unwrap();
    assert_eq!(
        export_records(directory.path(), ExportFormat::Csv, 0, &mut csv).unwrap(),
        5
    );
    let csv = String::from_utf8(csv).unwrap();
    assert_eq!(csv.lines().count(), 6);
    assert!(csv.contains("\"'=1+1,\"\"x\"\"\""), "{csv}");
    assert_eq!(
        export_records(directory.path(), ExportFormat::Csv, u64::MAX, &mut Vec::new()).unwrap(),
        0
    );
}

#[test]
fn a_long_text_is_cut_and_identified() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), AuditSettings::default());
    let mut long = run("run-1");
    long.command = "é".repeat(1_000_000);
    let _run = log.start_run(&caller(), &long).unwrap();
    let record = &records(directory.path())[0];
    let command = record["process"]["cmd_line"].as_str().unwrap();
    assert!(command.len() < 10_000 && command.contains("2000000 bytes, sha256:"));
}

#[test]
fn writers_at_the_same_time_keep_the_chain() {
    const WRITERS: usize = 8;
    const RUNS: usize = 200;
    let directory = tempfile::tempdir().unwrap();
    HostKey::open(directory.path()).unwrap();
    // Each writer has its own descriptors, as a process has.
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let trust_dir = directory.path();
            scope.spawn(move || {
                let settings = AuditSettings {
                    max_file_bytes: 200_000,
                    ..AuditSettings::default()
                };
                let log = open(trust_dir, settings);
                for number in 0..RUNS {
                    let started = log
                        .start_run(&caller(), &run(&format!("run-{writer}-{number}")))
                        .unwrap();
                    log.end_run(started, &end()).unwrap();
                }
            });
        }
    });
    let report = verify_log(directory.path(), &HostKey::open(directory.path()).unwrap()).unwrap();
    assert_eq!(report.bad, None);
    assert_eq!(report.records, (WRITERS * RUNS * 2) as u64);
    assert!(report.checkpoints >= report.records / 64);
    let files = fs::read_dir(directory.path().join("audit")).unwrap();
    assert!(
        files
            .filter(|file| file.as_ref().unwrap().file_name().to_str().unwrap().starts_with("log-"))
            .count()
            > 5
    );
    assert_eq!(fs::read_dir(directory.path().join("audit/open")).unwrap().count(), 0);
}

#[test]
fn old_files_are_removed_and_the_rest_stays_valid() {
    let directory = tempfile::tempdir().unwrap();
    let settings = AuditSettings {
        max_file_bytes: 5_000,
        max_files: 3,
        ..AuditSettings::default()
    };
    let log = open(directory.path(), settings);
    for number in 0..100 {
        let started = log.start_run(&caller(), &run(&format!("run-{number}"))).unwrap();
        log.end_run(started, &end()).unwrap();
    }
    let key = HostKey::open(directory.path()).unwrap();
    let report = verify_log(directory.path(), &key).unwrap();
    assert_eq!(report.bad, None);
    assert!(report.records > 0 && report.records < 100, "{report:?}");
}

#[test]
fn runs_of_a_dead_process_are_closed_as_lost() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), AuditSettings::default());
    let _killed = log.start_run(&caller(), &run("run-lost")).unwrap();
    let ended = log.start_run(&caller(), &run("run-ended")).unwrap();
    log.end_run(ended, &end()).unwrap();

    // While the process lives, nothing is lost.
    let _second = open(directory.path(), AuditSettings::default());
    assert_eq!(records(directory.path()).len(), 3);

    // The lock ends with the descriptors of the process.
    drop(log);
    let log = open(directory.path(), AuditSettings::default());
    let all = records(directory.path());
    assert_eq!(all.len(), 4);
    assert_eq!(
        (&all[3]["status_code"], &all[3]["process"]["uid"]),
        (&"lost".into(), &"run-lost".into())
    );
    drop(log);
    drop(open(directory.path(), AuditSettings::default()));
    assert_eq!(records(directory.path()).len(), 4, "closed once");
    assert!(
        verify_log(directory.path(), &HostKey::open(directory.path()).unwrap())
            .unwrap()
            .bad
            .is_none()
    );
}

#[test]
fn what_a_killed_writer_left_is_completed() {
    let directory = tempfile::tempdir().unwrap();
    let key = HostKey::open(directory.path()).unwrap();
    let log = open(directory.path(), AuditSettings::default());
    let head = directory.path().join("audit/head");
    let file = directory.path().join("audit/log-00000000.jsonl");
    let started = log.start_run(&caller(), &run("run-1")).unwrap();
    let old_head = fs::read(&head).unwrap();
    log.end_run(started, &end()).unwrap();

    // Killed after the record and before the head.
    fs::write(&head, &old_head).unwrap();
    let _second = log.start_run(&caller(), &run("run-2")).unwrap();
    assert_eq!(verify_log(directory.path(), &key).unwrap().bad, None);
    assert_eq!(records(directory.path()).len(), 3);

    // Killed within a record.
    let mut content = fs::read(&file).unwrap();
    content.extend_from_slice(b"{\"activity_id\":1,\"act");
    fs::write(&file, &content).unwrap();
    assert!(verify_log(directory.path(), &key).unwrap().bad.is_some());
    let _third = log.start_run(&caller(), &run("run-3")).unwrap();
    assert_eq!(verify_log(directory.path(), &key).unwrap().bad, None);
    assert_eq!(records(directory.path()).len(), 4);

    // A whole line that nobody of us wrote is not completed but refused.
    let mut content = fs::read(&file).unwrap();
    content.extend_from_slice(b"{\"activity_id\":1}\n");
    fs::write(&file, &content).unwrap();
    let error = log.start_run(&caller(), &run("run-4")).unwrap_err();
    assert!(error.to_string().contains("audit verify"), "{error}");
}

#[test]
fn nothing_is_recorded_when_the_log_is_off() {
    let directory = tempfile::tempdir().unwrap();
    let settings = AuditSettings {
        mode: AuditMode::Off,
        ..AuditSettings::default()
    };
    let log = open(directory.path(), settings);
    let started = log.start_run(&caller(), &run("run-1")).unwrap();
    log.end_run(started, &end()).unwrap();
    assert!(records(directory.path()).is_empty());
}

/// Prints the cost of a record; `cargo nextest run --release --no-capture` gives the number that counts.
#[test]
fn a_record_costs_some_microseconds() {
    const RUNS: u32 = 2_000;
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path(), AuditSettings::default());
    let runs: Vec<_> = (0..RUNS).map(|number| run(&format!("run-{number}"))).collect();
    let start = Instant::now();
    for run in &runs {
        let started = log.start_run(&caller(), run).unwrap();
        log.end_run(started, &end()).unwrap();
    }
    let per_record = start.elapsed() / (RUNS * 2);
    let start = Instant::now();
    let report = verify_log(directory.path(), &HostKey::open(directory.path()).unwrap()).unwrap();
    let rate = report.records as f64 / start.elapsed().as_secs_f64();
    println!("{per_record:?} for each record, {rate:.0} records a second verified");
    assert_eq!(report.records, u64::from(RUNS) * 2);
}
