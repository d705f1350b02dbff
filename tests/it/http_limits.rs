//! What a server takes on, and what it tells those it sends away.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::json;

use crate::lab::{HttpAnswer, HttpServer};

#[test]
fn a_full_queue_says_when_to_come_back() {
    let (server, _) = HttpServer::start(&["--max-runs", "1", "--max-queued", "1"], &[]);
    let run = json!({"skill": "python-math", "command": "exec sleep 7401"});
    let begin = || server.json("", "POST", "/v1/runs", Some(&run));
    let first = begin().good(202);
    let second = begin().good(202);
    let third = begin();
    assert_eq!(third.error(), (503, "busy".to_owned()));
    assert_eq!(third.header("retry-after"), Some("1"));
    server
        .json("", "POST", "/v1/sessions", Some(&json!({"id": "s1"})))
        .good(201);
    let tool = server.json("", "POST", "/v1/sessions/s1/tools/skill_list", Some(&json!({})));
    assert_eq!(tool.error(), (503, "busy".to_owned()));
    let metrics = server.json("", "GET", "/metrics", None).text();
    for line in [
        "skillbox_runs_running 1",
        "skillbox_runs_queued 1",
        "skillbox_runs_rejected_total 2",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} in\n{metrics}");
    }
    for run in [second, first] {
        let path = format!("/v1/runs/{}", run["run_id"].as_str().unwrap());
        server.json("", "DELETE", &path, None).good(200);
    }
    let run = json!({"skill": "python-math", "command": "true"});
    assert_eq!(
        server.json("", "POST", "/v1/runs?wait=30", Some(&run)).good(200)["exit_code"],
        0
    );
}

#[test]
fn bodies_end_at_their_limit() {
    let (server, _) = HttpServer::start(&["--max-body", "10000", "--max-upload", "100000"], &[]);
    let json = [("Content-Type", "application/json")];
    let large = json!({"skill": "x".repeat(10_001)}).to_string();
    let refused = server.ask("POST", "/v1/runs", &json, large.as_bytes());
    assert_eq!(refused.error(), (413, "limit_exceeded".to_owned()));
    let exact = server.ask("PUT", "/v1/artifacts/x", &[], &vec![b'x'; 100_000]);
    assert_eq!(exact.good(201)["size_bytes"], 100_000);
    let refused = server.ask("PUT", "/v1/artifacts/y", &[], &vec![b'x'; 100_001]);
    assert_eq!(refused.error(), (413, "limit_exceeded".to_owned()));
    assert_eq!(server.json("", "GET", "/v1/artifacts/y", None).status, 404);
    // A file that breaks off is not stored either.
    let mut cut = server.connect();
    write!(
        cut,
        "PUT /v1/artifacts/z HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\nabc"
    )
    .unwrap();
    drop(cut);
    server.wait_until("the half file is gone", || {
        let waiting = std::fs::read_dir(server.state("artifacts/tmp"));
        waiting.map_or(0, Iterator::count) == 0
    });
    assert_eq!(server.json("", "GET", "/v1/artifacts/z", None).status, 404);
    // Heads have limits too, which the protocol's own part holds.
    let long = "x".repeat(100_000);
    let head = server.ask("GET", "/healthz", &[("X-Long", &long)], b"");
    assert!(matches!(head.status, 0 | 400 | 431), "{}", head.status);
    assert_eq!(server.json("", "GET", "/healthz", None).status, 200);
}

#[test]
fn slow_heads_are_cut_and_nobody_else_waits() {
    let (server, _) = HttpServer::start(&["--head-time", "2"], &[]);
    let mut slow: Vec<TcpStream> = (0..50).map(|_| server.connect()).collect();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(1_200) {
        for stream in &mut slow {
            // One that is cut already says so here, and below.
            let _cut = stream.write_all(b"G");
        }
        let asked = Instant::now();
        assert_eq!(server.json("", "GET", "/healthz", None).status, 200);
        assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
        std::thread::sleep(Duration::from_millis(100));
    }
    for mut stream in slow {
        let mut rest = Vec::new();
        // An end, or the kernel's word that the other side is gone.
        let _reset = stream.read_to_end(&mut rest);
    }
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}

#[test]
fn ten_thousand_idle_connections_are_borne() {
    // Each takes a descriptor here and one there; the server inherits what we may have.
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    let descriptors = limit.current.unwrap_or(u64::MAX);
    let most = usize::try_from(descriptors.saturating_sub(1_000)).unwrap_or(usize::MAX);
    let count = most.min(10_000);
    let (server, _) = HttpServer::start(&["--max-connections", "20000", "--head-time", "60"], &[]);
    let idle: Vec<TcpStream> = (0..count).map(|_| server.connect()).collect();
    let asked = Instant::now();
    assert_eq!(server.json("", "GET", "/v1/skills", None).status, 200);
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    let metrics = server.json("", "GET", "/metrics", None).text();
    let value = |name: &str| -> u64 {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().parse().unwrap()
    };
    let open = value("skillbox_http_connections ");
    assert!(open >= count as u64, "{open} of {count} are open");
    let memory = value("process_resident_memory_bytes ");
    assert!(memory < 400 << 20, "{count} idle connections take {} MiB", memory >> 20);
    drop(idle);
}

#[test]
fn beyond_the_limit_of_connections_clients_wait() {
    let (server, _) = HttpServer::start(&["--max-connections", "3", "--head-time", "1"], &[]);
    let idle: Vec<TcpStream> = (0..3).map(|_| server.connect()).collect();
    std::thread::sleep(Duration::from_millis(100));
    let asked = Instant::now();
    let answer = HttpAnswer::read(server.send("GET", "/healthz", &[], b""));
    assert_eq!(answer.status, 200);
    assert!(
        asked.elapsed() > Duration::from_millis(300),
        "it had to wait for a place"
    );
    drop(idle);
}

#[test]
fn a_server_that_can_run_nothing_is_not_ready() {
    let (server, _) = HttpServer::start(&[], &[]);
    let run = json!({"skill": "python-math", "command": "true"});
    server.json("", "POST", "/v1/runs?wait=30", Some(&run)).good(200);
    server.json("", "GET", "/readyz", None).good(200);
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", server.pid())).unwrap();
    for child in children.split_whitespace() {
        let pid = rustix::process::Pid::from_raw(child.parse().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
    server.wait_until("readiness to end", || {
        server.json("", "GET", "/readyz", None).status == 503
    });
    assert_eq!(
        server.json("", "POST", "/v1/runs?wait=30", Some(&run)).error().1,
        "executor_unavailable"
    );
}
