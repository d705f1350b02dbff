//! Operating a server: its log, its metrics, reloading and draining.

use std::collections::BTreeMap;
use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{HttpServer, program, wait_until};

/// The lines of the log, each of which must be JSON.
fn log_of(server: &HttpServer) -> Vec<Value> {
    let text = server.log_text();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}")))
        .collect()
}

fn events<'l>(log: &'l [Value], message: &str) -> Vec<&'l Value> {
    log.iter().filter(|line| line["message"] == message).collect()
}

fn start_run(server: &HttpServer, token: &str, skill: &str, command: &str) -> Value {
    let body = json!({"skill": skill, "command": command, "timeout": 1});
    server
        .request_json(token, "POST", "/v1/runs?wait=100", Some(&body))
        .json()
}

#[test]
fn one_event_for_each_run_answers_who_ran_what_and_why_it_failed() {
    let (server, tokens) = HttpServer::start(&["--log", "info"], &["alice", "bob"]);
    for round in 0..6 {
        start_run(&server, &tokens[round % 2], "python-math", "echo 12345; echo > out/x");
    }
    start_run(&server, &tokens[0], "csv-report", "exit 3");
    start_run(&server, &tokens[1], "csv-report", "sleep 60");
    start_run(&server, &tokens[1], "no-such-skill", "true");
    server
        .request_json(&tokens[0], "POST", "/v1/sessions", Some(&json!({"id": "s1"})))
        .expect_status(201);
    let call = json!({"skill": "python-math", "command": "true"});
    server
        .request_json(&tokens[0], "POST", "/v1/sessions/s1/tools/skill_run", Some(&call))
        .expect_status(200);
    wait_until("the events of all runs", || events(&log_of(&server), "run").len() == 10);
    let log = log_of(&server);
    let runs = events(&log, "run");

    let who: BTreeMap<String, usize> = runs.iter().fold(BTreeMap::new(), |mut counts, run| {
        *counts
            .entry(format!(
                "{} {}",
                run["tenant"].as_str().unwrap(),
                run["skill"].as_str().unwrap()
            ))
            .or_default() += 1;
        counts
    });
    let expected = [
        ("alice csv-report", 1),
        ("alice python-math", 4),
        ("bob csv-report", 1),
        ("bob no-such-skill", 1),
        ("bob python-math", 3),
    ];
    assert_eq!(who, expected.map(|(key, count)| (key.to_owned(), count)).into());
    for run in &runs {
        assert!(run["request_id"].as_str().is_some_and(|id| !id.is_empty()), "{run}");
        for field in ["total_ms", "queue_ms"] {
            assert!(run[field].is_number(), "{field} in {run}");
        }
    }
    let ended: Vec<_> = runs.iter().filter(|run| run["error"].is_null()).collect();
    assert_eq!(ended.len(), 9);
    for run in &ended {
        assert!(run["digest"].as_str().unwrap().starts_with("sha256:"), "{run}");
        assert!(
            run["profile"] == "default" && run["tier"].as_str().unwrap().starts_with('T'),
            "{run}"
        );
        for field in [
            "duration_ms",
            "freeze_ms",
            "stage_ms",
            "collect_ms",
            "stdout_bytes",
            "output_bytes",
            "cpu_ms",
        ] {
            assert!(run[field].is_number(), "{field} in {run}");
        }
    }
    let find = |field: &str, value: Value| runs.iter().find(|run| run[field] == value).unwrap();
    assert_eq!(find("exit_code", json!(3))["skill"], "csv-report");
    let timed_out = find("ended_by", json!("timeout"));
    assert!(
        timed_out["reason"].as_str().unwrap().contains("--timeout"),
        "{timed_out}"
    );
    let refused = find("error", json!("unknown_skill"));
    assert!(
        refused["reason"].as_str().unwrap().contains("no-such-skill"),
        "{refused}"
    );
    assert_eq!(find("output_bytes", json!(1))["stdout_bytes"], 6);
    assert_eq!(find("session", json!("s1"))["tenant"], "alice");
    check_with_jq(&server);
}

/// The questions of an operator, each as one call of jq.
fn check_with_jq(server: &HttpServer) {
    if !crate::harness::need(program("jq").arg("--version").output().is_ok(), "jq") {
        return;
    }
    let log = server.state_path("log.json");
    fs::write(&log, server.log_text()).unwrap();
    let ask = |slurp: &str, filter: &str| {
        let output = program("jq").args([slurp, "-r", filter]).arg(&log).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let failures = ask(
        "-c",
        r#"select(.message == "run" and .exit_code != 0) | "\(.tenant) \(.skill) \(.error // .ended_by)""#,
    );
    assert_eq!(
        failures,
        "alice csv-report exit\nbob csv-report timeout\nbob no-such-skill unknown_skill\n"
    );
    let p99 = ask(
        "-s",
        r#"map(select(.message == "run" and .duration_ms)) | group_by(.skill)[]
           | "\(.[0].skill) \(map(.duration_ms) | sort | .[(length * 0.99 | ceil) - 1])""#,
    );
    let skills: Vec<&str> = p99.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(skills, ["csv-report", "python-math"], "{p99}");
}

#[test]
fn metrics_have_a_token_of_their_own() {
    let (server, tokens) = HttpServer::start(&["--log", "info"], &["alice", "prom --metrics"]);
    let (alice, prom) = (&tokens[0], &tokens[1]);
    start_run(&server, alice, "python-math", "true");
    start_run(&server, alice, "no-such-skill", "true");
    let metrics = server.request_json(prom, "GET", "/metrics", None);
    let text = metrics.text();
    for line in [
        "skillbox_runs_total{skill=\"python-math\",profile=\"default\",ended_by=\"exit\"} 1",
        "skillbox_runs_total{skill=\"\",profile=\"\",ended_by=\"refused\"} 1",
        "skillbox_run_queue_seconds_count 2",
        "skillbox_run_phase_seconds_count{phase=\"freeze\"} 1",
        "skillbox_run_phase_seconds_bucket{phase=\"run\",le=\"+Inf\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
    for name in [
        "skillbox_runs_degraded_total ",
        "skillbox_stored_bytes{kind=\"snapshots\"} ",
    ] {
        assert!(text.lines().any(|found| found.starts_with(name)), "{name} in\n{text}");
    }
    // Each token is for its own purpose.
    assert_eq!(server.request_json(prom, "GET", "/v1/skills", None).error().0, 403);
    assert_eq!(server.request_json(alice, "GET", "/metrics", None).error().0, 403);
    assert_eq!(server.request_json(alice, "GET", "/v1/skills", None).status, 200);
}

#[test]
fn a_hang_up_reloads_tokens_and_limits_and_never_stops() {
    let (mut server, tokens) = HttpServer::start(&["--log", "info"], &["alice", "bob"]);
    let (alice, bob) = (&tokens[0], &tokens[1]);
    let is_accepted =
        |server: &HttpServer, token: &str| server.request_json(token, "GET", "/v1/skills", None).status == 200;
    assert!(is_accepted(&server, alice) && is_accepted(&server, bob));
    let big = json!({"skill": "python-math", "command": "true", "env": {"A": "x".repeat(5_000)}});
    let run = |server: &HttpServer| {
        server
            .request_json(alice, "POST", "/v1/runs?wait=100", Some(&big))
            .status
    };
    assert_eq!(run(&server), 200);
    let config = server.config_path();
    let before = fs::read_to_string(&config).unwrap();
    let reload = |server: &HttpServer, text: &str, message: &str| {
        let count = events(&log_of(server), message).len();
        fs::write(&config, text).unwrap();
        server.signal(Signal::HUP);
        wait_until(message, || events(&log_of(server), message).len() > count);
    };
    let only_alice = before.split_once(", ").unwrap().0.to_owned() + "]\nmax_body = 2000\n";
    reload(&server, &only_alice, "settings reloaded");
    assert!(is_accepted(&server, alice) && !is_accepted(&server, bob));
    assert_eq!(run(&server), 413, "the smaller limit is in force");
    // Settings that cannot be used change nothing.
    let kept = "settings not reloaded; those before stay in force";
    for unusable in ["max_body = \"many\"", "tokens = [", "max_body = 9000000"] {
        reload(&server, unusable, kept);
        assert!(is_accepted(&server, alice), "{unusable}");
    }
    reload(&server, &before, "settings reloaded");
    assert!(is_accepted(&server, bob));
    server.signal(Signal::TERM);
    assert!(server.wait_for_exit().success());
    let log = log_of(&server);
    for message in ["starting", "listening", "draining", "stopped"] {
        assert_eq!(events(&log, message).len(), 1, "{message} in {log:#?}");
    }
}

#[test]
fn a_draining_server_says_so_and_finishes_its_runs() {
    let (mut server, _) = HttpServer::start(&["--log", "info", "--grace", "60"], &[]);
    let gate = json!({"skill": "python-math", "command": "echo ready; sleep 3; echo finished"});
    let started = server
        .request_json("", "POST", "/v1/runs", Some(&gate))
        .expect_status(202);
    let path = format!("/v1/runs/{}", started["run_id"].as_str().unwrap());
    wait_until("the start of the run", || {
        server.request_json("", "GET", &path, None).json()["status"] == "running"
    });
    server.signal(Signal::TERM);
    wait_until("draining", || !events(&log_of(&server), "draining").is_empty());
    assert_eq!(server.request_json("", "GET", "/readyz", None).status, 503);
    assert_eq!(
        server.request_json("", "POST", "/v1/runs", Some(&gate)).error().1,
        "busy"
    );
    let ended = server.request_json("", "GET", &format!("{path}?wait=60"), None).json();
    assert_eq!(ended["stdout"], "ready\nfinished\n", "{ended}");
    assert!(server.wait_for_exit().success());
    assert!(events(&log_of(&server), "runs are killed: the grace period is over").is_empty());
}

#[test]
fn runs_that_outlive_the_grace_period_are_killed_and_logged() {
    let (mut server, _) = HttpServer::start(&["--log", "info", "--grace", "0"], &[]);
    let body = json!({"skill": "python-math", "command": "sleep 100"});
    let started = server
        .request_json("", "POST", "/v1/runs", Some(&body))
        .expect_status(202);
    let path = format!("/v1/runs/{}", started["run_id"].as_str().unwrap());
    wait_until("the start of the run", || {
        server.request_json("", "GET", &path, None).json()["status"] == "running"
    });
    server.signal(Signal::TERM);
    assert!(server.wait_for_exit().success());
    let log = log_of(&server);
    let killed = events(&log, "runs are killed: the grace period is over");
    assert_eq!(killed[0]["running"], 1, "{log:#?}");
    // The run may be killed before its script starts.
    let run = events(&log, "run")[0];
    assert!(run["ended_by"] == "cancelled" || run["error"] == "cancelled", "{run}");
}

#[test]
fn sessions_and_artifacts_of_tenants_are_listed() {
    let (server, tokens) = HttpServer::start(&[], &["alice"]);
    server
        .request_json(&tokens[0], "POST", "/v1/sessions", Some(&json!({"id": "s1"})))
        .expect_status(201);
    server.request_json(&tokens[0], "PUT", "/v1/sessions/s1/files/work/a.txt", None);
    server
        .request_json(&tokens[0], "PUT", "/v1/artifacts/a.txt", Some(&json!("text")))
        .expect_status(201);
    let list = |words: &[&str]| -> Value {
        let output = program(env!("CARGO_BIN_EXE_skillbox"))
            .args(words)
            .args(["--json", "--state-dir"])
            .arg(server.state_path(""))
            .output()
            .unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    };
    assert_eq!(list(&["session", "list"])["sessions"], json!([]));
    assert_eq!(list(&["artifacts", "list"])["artifacts"], json!([]));
    let sessions = list(&["session", "list", "--tenant", "alice"]);
    assert_eq!(sessions["sessions"][0]["id"], "s1");
    assert!(sessions["sessions"][0]["workspace_bytes"].is_number(), "{sessions}");
    let artifacts = list(&["artifacts", "list", "--tenant", "alice"]);
    assert_eq!(artifacts["artifacts"][0]["name"], "a.txt");
}

#[test]
fn a_server_on_a_unix_socket_is_for_its_owner() {
    use std::io::{Read, Write};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;

    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("skillbox.sock");
    let mut command = program(env!("CARGO_BIN_EXE_skillbox"));
    command
        .args(["serve", "--listen", "unix:skillbox.sock", "--state-dir", "state"])
        .env("HOME", dir.path())
        .current_dir(dir.path());
    let mut server = crate::harness::spawn_tracked(&mut command);
    wait_until("the socket", || UnixStream::connect(&socket).is_ok());
    assert_eq!(socket.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let request = |headers: &str| {
        let mut stream = UnixStream::connect(&socket).unwrap();
        write!(
            stream,
            "GET /v1/skills HTTP/1.1\r\nHost: any\r\nConnection: close\r\n{headers}\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(request("").contains("python-math"));
    assert!(request("Origin: http://localhost\r\n").starts_with("HTTP/1.1 403"));
    crate::harness::kill_and_reap(&mut server);
    // The socket of a killed server is replaced.
    assert!(socket.exists());
    let mut server = crate::harness::spawn_tracked(&mut command);
    wait_until("the second server", || UnixStream::connect(&socket).is_ok());
    crate::harness::kill_and_reap(&mut server);
}
