//! Which jobs run first, and jobs that cost worker after worker.

use std::fs;

use serde_json::{Value, json};

use super::hosts::{QueueWords, Worker, other_host, submitter};
use crate::batch::results::job_lines;
use crate::harness::{Answer, Fixture, NatsCluster, NatsVersion};

fn results(fixture: &Fixture, queue: &QueueWords, name: &str) -> Vec<Value> {
    let args = ["--artifacts", queue.store(), "--json", "batch", "results", name];
    let answer: Answer = fixture.command(&args).run();
    let text = String::from_utf8(answer.process.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn urgent_jobs_run_before_those_that_were_queued_earlier() {
    let fixture = Fixture::new();
    let Some(nats) = NatsCluster::start(NatsVersion::New, 1, fixture.root_dir()) else {
        return;
    };
    let queue = QueueWords::with_directory(&fixture, &nats.address());
    let ids: Vec<String> = (0..10).map(|index| format!("j{index}")).collect();
    let jobs: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), "true")).collect();
    let path = fixture.path("scratch/jobs.jsonl");
    fs::write(&path, job_lines(&jobs)).unwrap();
    for priority in ["low", "normal", "high"] {
        let run = [
            "batch",
            "run",
            path.to_str().unwrap(),
            "--name",
            priority,
            "--priority",
            priority,
            "--detach",
        ];
        let answer = submitter(&fixture, &queue, &run).run();
        assert_eq!(answer.code, Some(0), "{}", answer.describe());
    }
    let worker = ["worker", "--jobs", "1", "--exit-when-idle", "3", "--json"];
    let worker = other_host(&fixture, &queue, "w1", &worker).run();
    assert_eq!(worker["finished"], json!(30), "{}", worker.describe());
    // The ids of runs are in the order of their starts.
    let mut order: Vec<(String, &str)> = Vec::new();
    for name in ["low", "normal", "high"] {
        let runs = results(&fixture, &queue, name).into_iter();
        order.extend(runs.map(|result| (result["run_id"].as_str().unwrap().to_owned(), name)));
    }
    order.sort_unstable();
    let order: Vec<&str> = order.into_iter().map(|(_, name)| name).collect();
    let expected = [vec!["high"; 10], vec!["normal"; 10], vec!["low"; 10]].concat();
    let displaced = order
        .iter()
        .zip(&expected)
        .filter(|(found, wanted)| found != wanted)
        .count();
    // A job that was fetched before the urgent ones were found may come first.
    assert!(displaced <= 4, "{order:?}");
}

#[test]
fn a_job_that_costs_every_worker_becomes_a_result() {
    let fixture = Fixture::new();
    let Some(nats) = NatsCluster::start(NatsVersion::New, 1, fixture.root_dir()) else {
        return;
    };
    let queue = QueueWords::with_directory(&fixture, &nats.address());
    let word = format!("88{}", std::process::id());
    let sleep = format!("sleep {word}");
    let path = fixture.path("scratch/jobs.jsonl");
    fs::write(&path, job_lines(&[("poison", &sleep), ("good", "true")])).unwrap();
    let run = [
        "batch",
        "run",
        path.to_str().unwrap(),
        "--name",
        "poisoned",
        "--detach",
        "--ack-wait",
        "2",
    ];
    assert_eq!(submitter(&fixture, &queue, &run).run().code, Some(0));
    let mut starts = 0;
    loop {
        let mut worker = Worker::start(&fixture, &queue, "w1", &["--jobs", "2"]);
        let is_over = || results(&fixture, &queue, "poisoned").len() == 2;
        let started = fixture.wait_for("the job or its result", || {
            match (fixture.host_pids_with(&word).is_empty(), is_over()) {
                (false, _) => Some(true),
                (true, true) => Some(false),
                _ => None,
            }
        });
        worker.kill();
        fixture.wait_for_no_process_with(&word);
        if !started {
            break;
        }
        starts += 1;
    }
    assert_eq!(starts, 5, "one start, and four after lost workers");
    let results = results(&fixture, &queue, "poisoned");
    let poison = results.iter().find(|result| result["id"] == "poison").unwrap();
    assert_eq!(
        (&poison["status"], &poison["cause"]),
        (&json!("failed"), &json!("lost")),
        "{poison}"
    );
    assert!(
        results
            .iter()
            .any(|result| result["id"] == "good" && result["status"] == "ok")
    );
}
