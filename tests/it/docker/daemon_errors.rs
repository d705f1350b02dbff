//! Daemons that are absent, outdated, full or ending: each case has its own error code.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{daemon, docker_fixture, end_daemon, wait_for_daemon};
use crate::harness::{Answer, Fixture, assert_within, kill_and_reap, need};

/// Runs a command on the daemon at `host`.
fn run_at(fixture: &Fixture, host: &str, command: &str) -> Answer {
    let arguments = ["run", "probe", "--executor", "docker", "--docker-host", host];
    fixture.command(&arguments).with_args(&["--json", "--", command]).run()
}

#[test]
fn without_a_daemon_the_error_is_immediate_and_has_a_hint() {
    let fixture = Fixture::new();
    let nowhere = format!("unix://{}", fixture.path_str("scratch/no-docker.sock"));
    let answer = run_at(&fixture, &nowhere, "true");
    assert_eq!(
        (answer.expect_refusal().0, answer.code),
        ("executor_unavailable", Some(125)),
        "{}",
        answer.describe()
    );
    assert_within(answer.process.wall, Duration::from_secs(1), "an absent daemon");
    let hint = answer["error"]["hint"].as_str().unwrap();
    assert!(
        hint.contains("start the Docker daemon") && hint.contains("--docker-host"),
        "{hint}"
    );
    assert_eq!(
        fs::read_dir(fixture.path("state/scratch"))
            .into_iter()
            .flatten()
            .count(),
        0
    );
    let invalid = run_at(&fixture, "nonsense", "true");
    assert_eq!(invalid.expect_refusal().0, "executor_unavailable");
    // Garbage collection works without a daemon.
    assert_eq!(
        fixture
            .command(&["session", "gc"])
            .env("DOCKER_HOST", nowhere)
            .run()
            .code,
        Some(0)
    );
}

#[test]
fn a_missing_image_error_says_how_to_build_it() {
    let Some(fixture) = docker_fixture() else { return };
    let answer = fixture
        .command(&[
            "run",
            "probe",
            "--docker-image",
            "skillbox-no-such:1",
            "--json",
            "--",
            "true",
        ])
        .run();
    assert_eq!(
        (answer.expect_refusal().0, answer.code),
        ("image_missing", Some(125)),
        "{}",
        answer.describe()
    );
    assert!(answer.mentions("skillbox-no-such:1") && answer.mentions("skillbox docker build-runner"));
    // An image without the runner.
    let base = fixture
        .command(&[
            "run",
            "probe",
            "--docker-image",
            "debian:bookworm-slim",
            "--json",
            "--",
            "true",
        ])
        .run();
    if need(!base.mentions("debian:bookworm-slim is missing"), "a base image") {
        assert_eq!(base.expect_refusal().0, "image_missing", "{}", base.describe());
    }
    daemon(&fixture).wait_for_no_containers();
}

/// A fake daemon with fixed responses, for errors that a real one rarely returns.
struct FakeDaemon {
    socket: PathBuf,
}

impl FakeDaemon {
    fn start(fixture: &Fixture, name: &str, answers: &'static [(&'static str, u16, &'static str)]) -> Self {
        let socket = fixture.path("scratch").join(name);
        let listener = UnixListener::bind(&socket).unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut reader = BufReader::new(stream);
                let mut first = String::new();
                let mut length = 0;
                loop {
                    let mut line = String::new();
                    if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
                        break;
                    }
                    if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap_or(0);
                    }
                    if first.is_empty() {
                        first = line;
                    }
                }
                let mut body = vec![0; length];
                let _ = reader.read_exact(&mut body);
                let found = answers.iter().find(|(path, ..)| first.contains(path));
                let (_, status, text) = found.unwrap_or(&("", 404, "{\"message\":\"page not found\"}"));
                let size = text.len();
                let answer = format!(
                    "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n{text}"
                );
                let _ = reader.get_mut().write_all(answer.as_bytes());
            }
        });
        Self { socket }
    }

    fn run_error(&self, fixture: &Fixture) -> (String, Value) {
        let host = format!("unix://{}", self.socket.display());
        let answer = run_at(fixture, &host, "echo it ran");
        assert_eq!(answer.code, Some(125), "{}", answer.describe());
        assert!(!answer.mentions("it ran"), "{}", answer.describe());
        (answer.expect_refusal().0.to_owned(), answer["error"].clone())
    }
}

#[test]
fn an_outdated_daemon_and_a_full_disk_have_their_own_error_codes() {
    let fixture = Fixture::new();
    let old = FakeDaemon::start(
        &fixture,
        "old.sock",
        &[("/version", 200, r#"{"ApiVersion":"1.24","MinAPIVersion":"1.12"}"#)],
    );
    let (code, error) = old.run_error(&fixture);
    assert_eq!(code, "executor_outdated", "{error}");
    assert!(error["message"].as_str().unwrap().contains("1.24"), "{error}");
    let full = FakeDaemon::start(
        &fixture,
        "full.sock",
        &[
            ("/version", 200, r#"{"ApiVersion":"1.41"}"#),
            ("/info", 200, "{}"),
            ("/images/", 200, r#"{"Id":"sha256:0"}"#),
            (
                "/containers/create",
                500,
                r#"{"message":"mkdir /var/lib/docker/overlay2/x: no space left on device"}"#,
            ),
        ],
    );
    let (code, error) = full.run_error(&fixture);
    assert_eq!(code, "executor_full", "{error}");
    assert!(error["hint"].as_str().unwrap().contains("free disk space"), "{error}");
    let silent = UnixListener::bind(fixture.path("scratch/silent.sock")).unwrap();
    drop(silent);
    let host = format!("unix://{}", fixture.path_str("scratch/silent.sock"));
    let closed = run_at(&fixture, &host, "true");
    assert_eq!(closed.expect_refusal().0, "executor_unavailable");
}

#[test]
fn a_daemon_that_ends_during_a_run_is_an_executor_lost_error() {
    let Some(fixture) = docker_fixture() else { return };
    let token = format!("{}-lost", fixture.canary());
    let mut child = fixture
        .request(json!({"argv": ["bash", "-c", "sleep 300; true", token], "timeout": 300}))
        .spawn();
    fixture.wait_for("the script", || fixture.host_pids_with(&token).pop());
    let begin = Instant::now();
    if !end_daemon(daemon(&fixture)) {
        child.kill().unwrap();
        kill_and_reap(&mut child);
        return;
    }
    let output = child.wait_with_output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    assert_eq!(
        (output.status.code(), &answer["error"]["code"]),
        (Some(125), &json!("executor_lost")),
        "{answer}"
    );
    assert_within(begin.elapsed(), Duration::from_secs(30), "the end of the daemon");
    wait_for_daemon(&fixture);
    daemon(&fixture).wait_for_no_containers();
    assert_eq!(
        fs::read_dir(fixture.path("state/scratch"))
            .into_iter()
            .flatten()
            .count(),
        0,
        "temporary files are left"
    );
    assert_eq!(fixture.run_shell("echo again").stdout(), "again\n");
}
