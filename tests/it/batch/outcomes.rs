//! How jobs end, which run again, and when a batch stops early.

use serde_json::json;

use super::results::{job_lines, read_results, summary};
use crate::harness::{Answer, Fixture};

fn run_jobs(fixture: &Fixture, jobs: &[(&str, &str)], more: &[&str]) -> Answer {
    let out = fixture.path_str("results");
    let args: Vec<&str> = ["batch", "run", "-", "--out", &out, "--json"]
        .into_iter()
        .chain(more.iter().copied())
        .collect();
    fixture.command(&args).stdin(job_lines(jobs)).run()
}

#[test]
fn every_failure_has_a_cause_and_a_reason() {
    let fixture = Fixture::new();
    let jobs = [
        ("ok", "echo fine"),
        ("exit", "echo why >&2; exit 3"),
        ("signal", "kill -SEGV $$"),
        ("timeout", "sleep 300"),
    ];
    let answer = run_jobs(&fixture, &jobs, &["--timeout", "1"]);
    assert_eq!(
        (answer.code, &answer["ok"], &answer["failed"]),
        (Some(1), &json!(1), &json!(3))
    );
    let results = read_results(&fixture.path("results"));
    for (id, cause, reason) in [
        ("exit", "exit", "exit code 3: why"),
        ("signal", "signal", "signal 11"),
        ("timeout", "timeout", "timeout"),
    ] {
        let result = &results[id];
        assert_eq!(
            (&result["status"], &result["cause"]),
            (&json!("failed"), &json!(cause)),
            "{result}"
        );
        assert!(result["reason"].as_str().unwrap().starts_with(reason), "{result}");
        assert_eq!(result["attempts"], 1);
    }
    assert_eq!(
        (&results["ok"]["status"], &results["ok"]["stdout"]),
        (&json!("ok"), &json!("fine\n"))
    );
    assert!(results["ok"]["key"].as_str().unwrap().starts_with("sha256:"));
    let failed = std::fs::read_to_string(fixture.path("results/failed.txt")).unwrap();
    assert_eq!(failed.lines().count(), 3);
    assert!(failed.contains("exit\texit\texit code 3: why\n"), "{failed}");
    assert_eq!(summary(&fixture.path("results"))["causes"]["timeout"], 1);
}

#[test]
fn only_the_chosen_causes_are_retried() {
    let fixture = Fixture::new();
    let jobs = [("exit", "exit 1"), ("signal", "kill -TERM $$"), ("ok", "true")];
    let answer = run_jobs(&fixture, &jobs, &["--retries", "2", "--retry-on", "signal,lost"]);
    assert_eq!(
        (answer.code, &answer["retries"]),
        (Some(1), &json!(2)),
        "{}",
        answer.describe()
    );
    let results = read_results(&fixture.path("results"));
    let attempts: Vec<_> = ["exit", "signal", "ok"]
        .iter()
        .map(|id| results[*id]["attempts"].as_u64())
        .collect();
    assert_eq!(attempts, [Some(1), Some(3), Some(1)]);
}

#[test]
fn a_batch_halts_soon_and_now() {
    let fixture = Fixture::new();
    let failing: Vec<(String, &str)> = (0..8).map(|index| (format!("f{index}"), "exit 1")).collect();
    let failing: Vec<(&str, &str)> = failing.iter().map(|(id, command)| (id.as_str(), *command)).collect();
    let answer = run_jobs(&fixture, &failing, &["--jobs", "1", "--halt", "soon,fail=25%"]);
    assert_eq!(answer.code, Some(124), "{}", answer.describe());
    assert_eq!((&answer["failed"], &answer["not_run"]), (&json!(2), &json!(6)));
    assert_eq!(answer["halted"]["reason"], "failures");

    let fixture = Fixture::new();
    let token = format!("{}-halted", fixture.canary());
    // The failing job waits until the other one runs, so that there is a running job to kill.
    let sleeping = format!("exec -a {token} sleep 300");
    let answer = run_jobs(
        &fixture,
        &[
            ("sleeping", &sleeping),
            ("failing", "sleep 0.5; exit 1"),
            ("later", "true"),
        ],
        &["--jobs", "2", "--halt", "now,fail=1"],
    );
    assert_eq!(answer.code, Some(124), "{}", answer.describe());
    let results = read_results(&fixture.path("results"));
    assert_eq!(results.keys().collect::<Vec<_>>(), ["failing"]);
    fixture.wait_for_no_process_with(&token);
}
