//! A queue or a store that is not there, and words that are wrong.

use std::fs;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use super::hosts::{QueueWords, error_code, other_host, submitter};
use crate::batch::results::job_lines;
use crate::harness::{Fixture, NatsCluster, NatsVersion};

#[test]
fn an_unreachable_queue_is_an_error_with_a_deadline() {
    let fixture = Fixture::new();
    let path = fixture.path("scratch/jobs.jsonl");
    fs::write(&path, job_lines(&[("one", "true")])).unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = closed.local_addr().unwrap().port();
    // A listener that accepts and says nothing, and a port where nobody listens.
    let silent = format!("nats://127.0.0.1:{port}");
    let closed = "nats://127.0.0.1:9".to_owned();
    let run = ["batch", "run", path.to_str().unwrap(), "--name", "x", "--json"];
    let silent = QueueWords::with_directory(&fixture, &silent);
    let closed = QueueWords::with_directory(&fixture, &closed);
    for command in [
        submitter(&fixture, &silent, &run),
        other_host(&fixture, &closed, "w1", &["worker", "--json"]),
    ] {
        let begin = Instant::now();
        let answer = command.run();
        assert_eq!(error_code(&answer), "queue_unreachable", "{}", answer.describe());
        assert_eq!(answer["error"]["field"], "queue");
        assert!(begin.elapsed() < Duration::from_secs(60));
    }
    assert!(
        !fixture.path("shared-store").exists(),
        "nothing is stored for a batch that cannot be queued"
    );
}

#[test]
fn a_worker_needs_a_store_that_it_can_write() {
    let fixture = Fixture::new();
    let Some(nats) = NatsCluster::start(NatsVersion::New, 1, fixture.root_dir()) else {
        return;
    };
    let unwritable = fixture.path_str("host/canary.txt");
    let answer = other_host(
        &fixture,
        &QueueWords::new(&nats.address(), &unwritable),
        "w1",
        &["worker", "--json"],
    )
    .run();
    assert_eq!(error_code(&answer), "storage", "{}", answer.describe());
    // The control: the same worker with a directory.
    let queue = QueueWords::with_directory(&fixture, &nats.address());
    let answer = other_host(&fixture, &queue, "w1", &["worker", "--json", "--exit-when-idle", "0"]).run();
    assert_eq!(answer.code, Some(0), "{}", answer.describe());
    let unknown = other_host(&fixture, &queue, "w1", &["batch", "status", "nowhere", "--json"]).run();
    assert!(
        unknown["error"]["hint"].as_str().unwrap().contains("artifacts"),
        "{}",
        unknown.describe()
    );
}

#[test]
fn wrong_words_are_refused_before_anything_is_queued() {
    let fixture = Fixture::new();
    let check = |args: &[&str], code: i32, word: &str| {
        let answer = fixture.command(args).run();
        assert_eq!(answer.code, Some(code), "{args:?}: {}", answer.describe());
        let text = String::from_utf8_lossy(&answer.process.stderr).into_owned() + &answer.json().to_string();
        assert!(text.contains(word), "{args:?}: {text}");
        assert!(!text.contains("SECRET"), "{text}");
    };
    let store = fixture.path_str("shared-store");
    let path = fixture.path_str("scratch/jobs.jsonl");
    fs::write(&path, job_lines(&[("one", "true")])).unwrap();
    let run = ["batch", "run", &path];
    let with = |more: &[&'static str]| {
        run.iter()
            .copied()
            .chain(more.iter().copied())
            .chain(["--artifacts", &store])
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let check_run = |more: &[&'static str], code: i32, word: &str| {
        let args = with(more);
        check(&args.iter().map(String::as_str).collect::<Vec<_>>(), code, word);
    };
    check_run(&["--queue", "nats://127.0.0.1:9"], 125, "--name");
    check_run(
        &["--queue", "nats://u:SECRET@127.0.0.1:9", "--name", "x"],
        125,
        "credentials",
    );
    check_run(&["--queue", "http://127.0.0.1:9", "--name", "x"], 125, "scheme");
    check_run(
        &["--queue", "nats://127.0.0.1:9", "--name", "a.b"],
        2,
        "name of a batch",
    );
    check_run(
        &["--queue", "nats://127.0.0.1:9", "--name", "x", "--priority", "urgent"],
        2,
        "high, normal or low",
    );
    check(&["worker", "--queue", "nats://127.0.0.1:9"], 2, "--artifacts");
    check(&["batch", "cancel", "x", "--artifacts", &store], 125, "--queue");
}
