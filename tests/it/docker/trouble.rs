//! Daemons that are absent, outdated, full or going: each has an error of its own.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{daemon, end_daemon, scene, wait_for_daemon};
use crate::lab::{Answer, Scene, need, reap};

/// A run by the daemon at `host`, whatever is there.
fn run_at(scene: &Scene, host: &str, command: &str) -> Answer {
    let arguments = ["run", "probe", "--executor", "docker", "--docker-host", host];
    scene.tell(&arguments).with(&["--json", "--", command]).go()
}

#[test]
fn without_a_daemon_the_answer_is_quick_and_says_what_to_do() {
    let scene = Scene::new();
    let nowhere = format!("unix://{}", scene.text("scratch/no-docker.sock"));
    let answer = run_at(&scene, &nowhere, "true");
    assert_eq!(
        (answer.refused().0, answer.code),
        ("executor_unavailable", Some(125)),
        "{}",
        answer.told()
    );
    assert!(
        answer.finished.wall < Duration::from_secs(1),
        "{:?}",
        answer.finished.wall
    );
    let hint = answer["error"]["hint"].as_str().unwrap();
    assert!(
        hint.contains("start the Docker daemon") && hint.contains("--docker-host"),
        "{hint}"
    );
    assert_eq!(
        fs::read_dir(scene.path("state/scratch")).into_iter().flatten().count(),
        0
    );
    let odd = run_at(&scene, "nonsense", "true");
    assert_eq!(odd.refused().0, "executor_unavailable");
    // What is collected as garbage does not need one.
    assert_eq!(
        scene.tell(&["session", "gc"]).env("DOCKER_HOST", nowhere).go().code,
        Some(0)
    );
}

#[test]
fn a_missing_image_is_told_with_how_to_build_it() {
    let Some(scene) = scene() else { return };
    let answer = scene
        .tell(&[
            "run",
            "probe",
            "--docker-image",
            "skillbox-no-such:1",
            "--json",
            "--",
            "true",
        ])
        .go();
    assert_eq!(
        (answer.refused().0, answer.code),
        ("image_missing", Some(125)),
        "{}",
        answer.told()
    );
    assert!(answer.mentions("skillbox-no-such:1") && answer.mentions("skillbox docker build-runner"));
    // An image that is there and has no runner.
    let base = scene
        .tell(&[
            "run",
            "probe",
            "--docker-image",
            "debian:bookworm-slim",
            "--json",
            "--",
            "true",
        ])
        .go();
    if need(!base.mentions("debian:bookworm-slim is missing"), "a base image") {
        assert_eq!(base.refused().0, "image_missing", "{}", base.told());
    }
    daemon(&scene).refuse_containers();
}

/// A daemon that answers with fixed words: what a real one says only on a bad day.
struct Pretender {
    socket: PathBuf,
}

impl Pretender {
    fn start(scene: &Scene, name: &str, answers: &'static [(&'static str, u16, &'static str)]) -> Self {
        let socket = scene.path("scratch").join(name);
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

    fn ask(&self, scene: &Scene) -> (String, Value) {
        let host = format!("unix://{}", self.socket.display());
        let answer = run_at(scene, &host, "echo it ran");
        assert_eq!(answer.code, Some(125), "{}", answer.told());
        assert!(!answer.mentions("it ran"), "{}", answer.told());
        (answer.refused().0.to_owned(), answer["error"].clone())
    }
}

#[test]
fn an_old_daemon_and_a_full_disk_have_errors_of_their_own() {
    let scene = Scene::new();
    let old = Pretender::start(
        &scene,
        "old.sock",
        &[("/version", 200, r#"{"ApiVersion":"1.24","MinAPIVersion":"1.12"}"#)],
    );
    let (code, error) = old.ask(&scene);
    assert_eq!(code, "executor_outdated", "{error}");
    assert!(error["message"].as_str().unwrap().contains("1.24"), "{error}");
    let full = Pretender::start(
        &scene,
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
    let (code, error) = full.ask(&scene);
    assert_eq!(code, "executor_full", "{error}");
    assert!(error["hint"].as_str().unwrap().contains("free space"), "{error}");
    let silent = UnixListener::bind(scene.path("scratch/silent.sock")).unwrap();
    drop(silent);
    let host = format!("unix://{}", scene.text("scratch/silent.sock"));
    let gone = run_at(&scene, &host, "true");
    assert_eq!(gone.refused().0, "executor_unavailable");
}

#[test]
fn a_daemon_that_ends_in_the_middle_is_told_and_forgotten() {
    let Some(scene) = scene() else { return };
    let mut child = scene.ask(json!({"command": "echo begun; sleep 60"})).begin();
    scene.wait_for("a container", Duration::from_secs(20), || {
        daemon(&scene).containers().pop()
    });
    std::thread::sleep(Duration::from_millis(500));
    let begin = Instant::now();
    if !end_daemon(daemon(&scene)) {
        child.kill().unwrap();
        reap(&mut child);
        return;
    }
    let output = child.wait_with_output().unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    assert_eq!(
        (output.status.code(), &told["error"]["code"]),
        (Some(125), &json!("executor_lost")),
        "{told}"
    );
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    wait_for_daemon(&scene);
    daemon(&scene).refuse_containers();
    assert_eq!(
        fs::read_dir(scene.path("state/scratch")).into_iter().flatten().count(),
        0,
        "files are left"
    );
    assert_eq!(scene.sh("echo again").stdout(), "again\n");
}
