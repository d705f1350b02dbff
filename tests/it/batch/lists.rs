//! Job lists: bad lines, duplicate ids, directories of other batches.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::results::{job_lines, read_results};
use crate::harness::{Answer, Fixture, kill_and_reap};

fn run_lines(fixture: &Fixture, lines: &str, more: &[&str]) -> Answer {
    let out = fixture.path_str("results");
    let args: Vec<&str> = ["batch", "run", "-", "--out", &out, "--json"]
        .into_iter()
        .chain(more.iter().copied())
        .collect();
    fixture.command(&args).stdin(lines).run()
}

#[test]
fn bad_lines_are_reported_with_line_and_field_before_anything_runs() {
    let fixture = Fixture::new();
    let good = job_lines(&[("good", "true")]);
    let nested =
        json!({"skill": "probe", "command": "true", "inputs": [{"from": "host:///etc/hosts", "to": "/etc/x"}]});
    let cases = [
        (r#"{"skill":"probe","comand":"x"}"#.to_owned(), "line 2: comand"),
        (r#"{"skill":"nobody","command":"x"}"#.to_owned(), "line 2: skill"),
        (
            r#"{"skill":"probe","command":"x","timeout":-1}"#.to_owned(),
            "line 2: timeout",
        ),
        (
            r#"{"skill":"probe","command":"x","profile":"none"}"#.to_owned(),
            "line 2: profile",
        ),
        (
            r#"{"id":"good","skill":"probe","command":"x"}"#.to_owned(),
            "line 2: id",
        ),
        (
            r#"{"id":"../../x","skill":"probe","command":"x"}"#.to_owned(),
            "line 2: id",
        ),
        (nested.to_string(), "line 2: inputs[0].to"),
        ("not json".to_owned(), "line 2"),
    ];
    for (line, field) in &cases {
        let answer = run_lines(&fixture, &format!("{good}{line}\n"), &[]);
        assert_eq!(answer.code, Some(125), "{}", answer.describe());
        assert_eq!(answer.expect_refusal().1, Some(*field), "{}", answer.describe());
        assert!(answer["error"]["message"].as_str().unwrap().starts_with("-:2"));
        assert!(!fixture.path("results").exists(), "{line}");
    }
    // All bad lines at once, and the good ones with --skip-bad.
    let lines: String = cases.iter().map(|(line, _)| format!("{line}\n")).collect();
    let answer = run_lines(&fixture, &format!("{good}{lines}"), &[]);
    assert_eq!(
        answer["error"]["message"].as_str().unwrap().lines().count(),
        cases.len()
    );
    let answer = run_lines(&fixture, &format!("{good}{lines}"), &["--skip-bad"]);
    assert_eq!(
        (answer.code, &answer["jobs"], &answer["ok"]),
        (Some(0), &json!(1), &json!(1))
    );
    let answer = run_lines(&Fixture::new(), "\n", &[]);
    assert_eq!(answer.expect_refusal().0, "invalid_request", "an empty list");
}

#[test]
fn a_directory_of_another_batch_is_refused() {
    let fixture = Fixture::new();
    let out = fixture.path_str("results");
    for name in ["a", "b"] {
        fs::write(
            fixture.path(&format!("scratch/{name}.jsonl")),
            job_lines(&[(name, "true")]),
        )
        .unwrap();
    }
    let run = |list: &str, more: &[&str]| {
        let args: Vec<&str> = ["batch", "run", list, "--out", &out, "--json"]
            .into_iter()
            .chain(more.iter().copied())
            .collect();
        fixture.command(&args).run()
    };
    assert_eq!(run("a.jsonl", &[]).code, Some(0));
    assert_eq!(run("a.jsonl", &[]).expect_refusal(), ("already_exists", Some("out")));
    assert_eq!(
        run("b.jsonl", &["--resume"]).expect_refusal(),
        ("already_exists", Some("out"))
    );
    assert_eq!(run("a.jsonl", &["--resume"]).code, Some(0), "the control");
    assert_eq!(read_results(out.as_ref()).len(), 1);
    // A directory with files of somebody else stays as it is.
    fs::remove_dir_all(&out).unwrap();
    fs::create_dir(&out).unwrap();
    fs::write(fixture.path("results/mine"), "").unwrap();
    assert_eq!(
        run("a.jsonl", &["--resume"]).expect_refusal(),
        ("already_exists", Some("out"))
    );
    assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
}

#[test]
fn two_processes_do_not_share_a_directory_and_a_signal_halts() {
    let fixture = Fixture::new();
    let out = fixture.path_str("results");
    let token = format!("{}-batch", fixture.canary());
    let lines = job_lines(&[("quick", "true"), ("slow", &format!("exec -a {token} sleep 300"))]);
    let args = ["batch", "run", "-", "--out", &out, "--json", "--jobs", "1"];
    let mut child = fixture.command(&args).stdin(lines.as_str()).spawn();
    fixture.wait_for("the second job", || {
        (!fixture.host_pids_with(&token).is_empty()).then_some(())
    });
    let second = fixture
        .command(&args)
        .with_args(&["--resume"])
        .stdin(lines.as_str())
        .run();
    assert_eq!(second.expect_refusal().0, "busy");
    let status = fixture.command(&["batch", "status", &out, "--json"]).run();
    assert_eq!(
        (&status["running"], &status["jobs"]),
        (&json!(true), &json!(2)),
        "{}",
        status.describe()
    );
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let end = fixture.wait_for("the end of the batch", || child.try_wait().unwrap());
    kill_and_reap(&mut child);
    assert_eq!(end.code(), Some(124));
    let results = read_results(out.as_ref());
    assert_eq!(
        results.keys().collect::<Vec<_>>(),
        ["quick"],
        "a killed job has no result"
    );
    assert!(fixture.host_pids_with(&token).is_empty());
    let status = fixture.command(&["batch", "status", &out, "--json"]).run();
    assert_eq!((&status["running"], &status["not_run"]), (&json!(false), &json!(1)));
}
