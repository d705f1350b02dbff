//! A cluster of three servers, of the oldest and of the newest version, that loses one of them.

use std::fs;

use serde_json::json;

use super::hosts::{QueueWords, Worker, submitter};
use crate::batch::results::{job_lines, read_results};
use crate::harness::{Fixture, NatsCluster, NatsVersion};

const JOBS: usize = 60;

fn check_batch_survives_the_loss_of_a_server(version: NatsVersion) {
    let fixture = Fixture::new();
    let Some(mut nats) = NatsCluster::start(version, 3, fixture.root_dir()) else {
        return;
    };
    let queue = QueueWords::with_directory(&fixture, &nats.address());
    let ids: Vec<String> = (0..JOBS).map(|index| format!("j{index}")).collect();
    let jobs: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), "sleep 0.1")).collect();
    let path = fixture.path("scratch/jobs.jsonl");
    fs::write(&path, job_lines(&jobs)).unwrap();
    let workers = ["w1", "w2"].map(|host| Worker::start(&fixture, &queue, host, &["--jobs", "1"]));
    let out = fixture.path("results");
    let run = [
        "batch",
        "run",
        path.to_str().unwrap(),
        "--name",
        "three",
        "--json",
        "--out",
        out.to_str().unwrap(),
    ];
    let child = submitter(&fixture, &queue, &run).spawn();
    fixture.wait_for("some results", || (read_results(&out).len() > JOBS / 6).then_some(()));
    let finished_before = read_results(&out).len();
    assert!(finished_before < JOBS, "the server is lost in the middle");
    nats.kill(finished_before % nats.len());
    let output = child.wait_with_output().unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (output.status.code(), &summary["ok"]),
        (Some(0), &json!(JOBS)),
        "{summary}"
    );
    assert_eq!(read_results(&out).len(), JOBS);
    for worker in workers {
        assert_eq!(worker.terminate(), Some(0));
    }
}

#[test]
fn a_batch_survives_the_loss_of_a_server() {
    check_batch_survives_the_loss_of_a_server(NatsVersion::New);
}

#[test]
fn a_batch_survives_the_loss_of_an_old_server() {
    check_batch_survives_the_loss_of_a_server(NatsVersion::Old);
}

#[test]
fn a_worker_without_a_server_still_ends() {
    let fixture = Fixture::new();
    let Some(mut nats) = NatsCluster::start(NatsVersion::New, 1, fixture.root_dir()) else {
        return;
    };
    let queue = QueueWords::with_directory(&fixture, &nats.address());
    let path = fixture.path("scratch/jobs.jsonl");
    fs::write(&path, job_lines(&[("one", "true")])).unwrap();
    let worker = Worker::start(&fixture, &queue, "w1", &["--jobs", "1"]);
    let run = ["batch", "run", path.to_str().unwrap(), "--name", "one", "--json"];
    assert_eq!(submitter(&fixture, &queue, &run).run()["ok"], json!(1));
    nats.kill(0);
    assert_eq!(worker.terminate(), Some(0));
}
