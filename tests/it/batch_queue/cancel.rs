//! Cancelling a batch from another host.

use std::fs;

use serde_json::json;

use super::hosts::{QueueWords, Worker, other_host, submitter};
use crate::batch::results::job_lines;
use crate::harness::{Fixture, NatsCluster, NatsVersion};

#[test]
fn a_cancelled_batch_kills_what_runs_and_never_runs_the_rest() {
    let fixture = Fixture::new();
    let Some(nats) = NatsCluster::start(NatsVersion::New, 1, fixture.root_dir()) else {
        return;
    };
    let queue = QueueWords::with_directory(&fixture, &nats.address());
    let word = format!("86{}", std::process::id());
    let sleep = format!("sleep {word}");
    let jobs = [
        ("first", "true"),
        ("long", sleep.as_str()),
        ("a", "true"),
        ("b", "true"),
        ("c", "true"),
    ];
    let path = fixture.path("scratch/jobs.jsonl");
    fs::write(&path, job_lines(&jobs)).unwrap();
    let worker = Worker::start(&fixture, &queue, "w1", &["--jobs", "1"]);
    let run = ["batch", "run", path.to_str().unwrap(), "--name", "cut", "--json"];
    let child = submitter(&fixture, &queue, &run).spawn();
    fixture.wait_for("the long job", || {
        (!fixture.host_pids_with(&word).is_empty()).then_some(())
    });
    let cancel = || other_host(&fixture, &queue, "w2", &["batch", "cancel", "cut", "--json"]).run();
    assert_eq!(cancel()["cancelled"], json!(true));
    fixture.wait_for_no_process_with(&word);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(124));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&summary["ok"], &summary["not_run"]),
        (&json!(1), &json!(4)),
        "{summary}"
    );
    assert_eq!(summary["halted"], json!({"reason": "cancelled"}));
    assert_eq!(cancel()["cancelled"], json!(false), "it was cancelled before");
    let status = other_host(&fixture, &queue, "w2", &["batch", "status", "cut", "--json"]).run();
    assert_eq!((&status["cancelled"], &status["not_run"]), (&json!(true), &json!(4)));

    // A resumed batch runs what is left.
    fs::write(&path, job_lines(&jobs).replace(&sleep, "true")).unwrap();
    let resumed = submitter(&fixture, &queue, &run).with_args(&["--resume"]).run();
    assert_eq!(
        (&resumed["ok"], &resumed["resumed"]),
        (&json!(5), &json!(1)),
        "{}",
        resumed.describe()
    );
    assert_eq!(worker.terminate(), Some(0));
}

#[test]
fn a_halt_rule_cancels_the_batch() {
    let fixture = Fixture::new();
    let Some(nats) = NatsCluster::start(NatsVersion::New, 1, fixture.root_dir()) else {
        return;
    };
    let queue = QueueWords::with_directory(&fixture, &nats.address());
    let word = format!("87{}", std::process::id());
    let sleep = format!("sleep {word}");
    let path = fixture.path("scratch/jobs.jsonl");
    fs::write(
        &path,
        job_lines(&[("bad", "exit 3"), ("long", &sleep), ("rest", "true")]),
    )
    .unwrap();
    let worker = Worker::start(&fixture, &queue, "w1", &["--jobs", "1"]);
    let run = [
        "batch",
        "run",
        path.to_str().unwrap(),
        "--name",
        "halted",
        "--json",
        "--halt",
        "now,fail=1",
    ];
    let answer = submitter(&fixture, &queue, &run).run();
    assert_eq!(answer.code, Some(124), "{}", answer.describe());
    assert_eq!(answer["halted"], json!({"reason": "failures", "failed": 1}));
    fixture.wait_for_no_process_with(&word);
    assert_eq!(worker.terminate(), Some(0));
}
