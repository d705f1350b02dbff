//! A worker applies its own trust rules to skills that came from elsewhere.

use std::fs;

use serde_json::json;

use super::hosts::{QueueWords, Worker, submitter};
use crate::batch::results::{job_lines, read_results};
use crate::harness::{Fixture, NatsCluster, NatsVersion};

#[test]
fn s45_h254_a_worker_refuses_a_digest_that_nobody_approved() {
    let fixture = Fixture::new();
    let Some(nats) = NatsCluster::start(NatsVersion::New, 1, fixture.root_dir()) else {
        return;
    };
    let queue = QueueWords::with_directory(&fixture, &nats.address());
    let path = fixture.path("scratch/jobs.jsonl");
    fs::write(&path, job_lines(&[("one", "true")])).unwrap();
    let out = fixture.path("results");
    let run = [
        "batch",
        "run",
        path.to_str().unwrap(),
        "--json",
        "--out",
        out.to_str().unwrap(),
        "--name",
    ];
    let worker = Worker::start(&fixture, &queue, "w1", &["--trust", "approved"]);
    let args: Vec<&str> = run.iter().chain(&["unapproved"]).copied().collect();
    let refused = submitter(&fixture, &queue, &args).run();
    assert_eq!(
        (refused.code, &refused["causes"]),
        (Some(1), &json!({"refused": 1})),
        "{}",
        refused.describe()
    );
    let result = &read_results(&out)["one"];
    assert_eq!(result["error"]["code"], "not_approved", "{result}");
    assert!(
        result["reason"].as_str().unwrap().starts_with("not_approved: "),
        "{result}"
    );

    // The control: the worker's operator approves exactly this skill, and the same batch runs.
    let state = fixture.path_str("w1");
    let skills = fixture.path_str("skills");
    let approve = [
        "--state-dir",
        &state,
        "--skills",
        &skills,
        "approve",
        "probe",
        "--yes",
        "--json",
    ];
    let approved = fixture.plain_command(&approve).run();
    assert_eq!(approved.code, Some(0), "{}", approved.describe());
    let args: Vec<&str> = run.iter().chain(&["unapproved", "--resume-failed"]).copied().collect();
    let ran = submitter(&fixture, &queue, &args).run();
    assert_eq!((ran.code, &ran["ok"]), (Some(0), &json!(1)), "{}", ran.describe());

    // One changed byte is another digest.
    fs::write(fixture.skill_path("probe", "scripts/new.sh"), "echo changed\n").unwrap();
    let args: Vec<&str> = run.iter().chain(&["unapproved", "--resume"]).copied().collect();
    let changed = submitter(&fixture, &queue, &args).run();
    assert_eq!(
        (changed.code, &changed["causes"]),
        (Some(1), &json!({"refused": 1})),
        "{}",
        changed.describe()
    );
    assert_eq!(worker.terminate(), Some(0));
}

#[test]
fn s45_h255_an_exchanged_skill_in_the_store_does_not_run() {
    let fixture = Fixture::new();
    let Some(nats) = NatsCluster::start(NatsVersion::New, 1, fixture.root_dir()) else {
        return;
    };
    let queue = QueueWords::with_directory(&fixture, &nats.address());
    let path = fixture.path("scratch/jobs.jsonl");
    fs::write(&path, job_lines(&[("one", "cat SKILL.md > out/skill")])).unwrap();
    let out = fixture.path("results");
    let submit = |name: &str, more: &[&str]| {
        let run = ["batch", "run", path.to_str().unwrap(), "--json", "--name", name];
        let args: Vec<&str> = run.iter().chain(more).copied().collect();
        submitter(&fixture, &queue, &args).run()
    };
    let detached = submit("exchanged", &["--detach"]);
    assert_eq!(detached.code, Some(0), "{}", detached.describe());
    // Somebody who can write to the store gives the archive other content, and another time gives the submission another
    // archive whose content fits its name.
    let submission = fixture.path("shared-store/batches/exchanged/submissions/00000001");
    let mut record: serde_json::Value = serde_json::from_slice(&fs::read(&submission).unwrap()).unwrap();
    let digest = record["skills"]["probe"]["archive"]
        .as_str()
        .unwrap()
        .trim_start_matches("sha256:")
        .to_owned();
    let content = |hex: &str| {
        fixture.path(&format!(
            "shared-store/batches/exchanged/cas/sha256/{}/{hex}",
            &hex[..2]
        ))
    };
    let archive = fs::read(content(&digest)).unwrap();
    let (text, evil) = (b"A skill of the tests", b"Another skill, evil!");
    let at = archive.windows(text.len()).position(|window| window == text).unwrap();
    let changed = [&archive[..at], evil, &archive[at + text.len()..]].concat();
    let hex: String = {
        use sha2::{Digest as _, Sha256};
        Sha256::digest(&changed)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    };
    fs::create_dir_all(content(&hex).parent().unwrap()).unwrap();
    fs::write(content(&hex), &changed).unwrap();
    record["skills"]["probe"]["archive"] = json!(format!("sha256:{hex}"));
    fs::write(&submission, record.to_string()).unwrap();
    let worker = Worker::start(&fixture, &queue, "w1", &[]);
    let status = fixture.wait_for("the result", || {
        let args = ["--artifacts", queue.store(), "--json", "batch", "results", "exchanged"];
        let answer = fixture.command(&args).run();
        answer.json().get("id").is_some().then(|| answer.json().clone())
    });
    assert_eq!(
        (&status["cause"], &status["error"]["code"]),
        (&json!("refused"), &json!("skill_unreadable")),
        "{status}"
    );
    // The control: the same worker runs the skill that was submitted.
    let ran = submit("unchanged", &["--out", out.to_str().unwrap()]);
    assert_eq!((ran.code, &ran["ok"]), (Some(0), &json!(1)), "{}", ran.describe());
    assert_eq!(worker.terminate(), Some(0));
}
