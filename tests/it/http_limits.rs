//! The limits of a server, and its responses beyond them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::json;

use crate::harness::{HttpResponse, HttpServer, assert_within, wait_until};

#[test]
fn a_full_queue_is_refused_with_retry_after() {
    let (server, _) = HttpServer::start(&["--max-runs", "1", "--max-queued", "1"], &[]);
    let run = json!({"skill": "python-math", "command": "exec sleep 7401"});
    let start = || server.request_json("", "POST", "/v1/runs", Some(&run));
    let first = start().expect_status(202);
    let second = start().expect_status(202);
    let third = start();
    assert_eq!(third.error(), (503, "busy".to_owned()));
    assert_eq!(third.header("retry-after"), Some("1"));
    server
        .request_json("", "POST", "/v1/sessions", Some(&json!({"id": "s1"})))
        .expect_status(201);
    let tool = server.request_json("", "POST", "/v1/sessions/s1/tools/skill_list", Some(&json!({})));
    assert_eq!(tool.error(), (503, "busy".to_owned()));
    let metrics = server.request_json("", "GET", "/metrics", None).text();
    for line in [
        "skillbox_runs_running 1",
        "skillbox_runs_queued 1",
        "skillbox_runs_rejected_total 2",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} in\n{metrics}");
    }
    for run in [second, first] {
        let path = format!("/v1/runs/{}", run["run_id"].as_str().unwrap());
        server.request_json("", "DELETE", &path, None).expect_status(200);
    }
    let run = json!({"skill": "python-math", "command": "true"});
    assert_eq!(
        server
            .request_json("", "POST", "/v1/runs?wait=100", Some(&run))
            .expect_status(200)["exit_code"],
        0
    );
}

#[test]
fn bodies_over_the_limit_are_refused() {
    let (server, _) = HttpServer::start(&["--max-body", "10000", "--max-upload", "100000"], &[]);
    let json = [("Content-Type", "application/json")];
    let large = json!({"skill": "x".repeat(10_001)}).to_string();
    let refused = server.request("POST", "/v1/runs", &json, large.as_bytes());
    assert_eq!(refused.error(), (413, "limit_exceeded".to_owned()));
    let exact = server.request("PUT", "/v1/artifacts/x", &[], &vec![b'x'; 100_000]);
    assert_eq!(exact.expect_status(201)["size_bytes"], 100_000);
    let refused = server.request("PUT", "/v1/artifacts/y", &[], &vec![b'x'; 100_001]);
    assert_eq!(refused.error(), (413, "limit_exceeded".to_owned()));
    assert_eq!(server.request_json("", "GET", "/v1/artifacts/y", None).status, 404);
    // An upload that breaks off is not stored either.
    let mut cut = server.connect();
    write!(
        cut,
        "PUT /v1/artifacts/z HTTP/1.1\r\nHost: {}\r\nContent-Length: 5000\r\n\r\nabc",
        server.address
    )
    .unwrap();
    drop(cut);
    wait_until("the incomplete file is removed", || {
        let files = std::fs::read_dir(server.state_path("artifacts/tmp"));
        files.map_or(0, Iterator::count) == 0
    });
    assert_eq!(server.request_json("", "GET", "/v1/artifacts/z", None).status, 404);
    // The HTTP library limits the request head.
    let long = "x".repeat(100_000);
    let head = server.request("GET", "/healthz", &[("X-Long", &long)], b"");
    assert!(matches!(head.status, 0 | 400 | 431), "{}", head.status);
    assert_eq!(server.request_json("", "GET", "/healthz", None).status, 200);
}

#[test]
fn slow_request_heads_time_out_without_delaying_others() {
    let (server, _) = HttpServer::start(&["--head-time", "2"], &[]);
    let mut slow: Vec<TcpStream> = (0..50).map(|_| server.connect()).collect();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(1_200) {
        for stream in &mut slow {
            // The server may have closed the connection.
            let _closed = stream.write_all(b"G");
        }
        let asked = Instant::now();
        assert_eq!(server.request_json("", "GET", "/healthz", None).status, 200);
        assert_within(asked.elapsed(), Duration::from_secs(1), "a request beside slow ones");
        std::thread::sleep(Duration::from_millis(100));
    }
    for mut stream in slow {
        let mut rest = Vec::new();
        // The connection ends or is reset.
        let _reset = stream.read_to_end(&mut rest);
    }
    assert_within(begun.elapsed(), Duration::from_secs(8), "the end of the slow requests");
}

#[test]
fn ten_thousand_idle_connections_do_not_delay_a_request() {
    // Each connection takes a descriptor of the test and one of the server, which inherits the limit.
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    let descriptors = limit.current.unwrap_or(u64::MAX);
    let limit = usize::try_from(descriptors.saturating_sub(1_000)).unwrap_or(usize::MAX);
    let count = limit.min(10_000);
    let (server, _) = HttpServer::start(&["--max-connections", "20000", "--head-time", "60"], &[]);
    let idle: Vec<TcpStream> = (0..count).map(|_| server.connect()).collect();
    let asked = Instant::now();
    assert_eq!(server.request_json("", "GET", "/v1/skills", None).status, 200);
    assert_within(
        asked.elapsed(),
        Duration::from_secs(5),
        "a request beside idle connections",
    );
    let metrics = server.request_json("", "GET", "/metrics", None).text();
    let value = |name: &str| -> u64 {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().parse().unwrap()
    };
    let open = value("skillbox_http_connections ");
    assert!(open >= count as u64, "{open} of {count} connections are open");
    let memory = value("process_resident_memory_bytes ");
    assert!(memory < 400 << 20, "{count} idle connections use {} MiB", memory >> 20);
    drop(idle);
}

#[test]
fn connections_over_the_limit_wait() {
    let (server, _) = HttpServer::start(&["--max-connections", "3", "--head-time", "2"], &[]);
    let begun = Instant::now();
    let _idle: Vec<TcpStream> = (0..3).map(|_| server.connect()).collect();
    let response = HttpResponse::read(server.send("GET", "/healthz", &[], b""));
    assert_eq!(response.status, 200);
    assert!(
        begun.elapsed() >= Duration::from_secs(2),
        "the request was served before an idle connection timed out"
    );
}

#[test]
fn a_server_without_a_spawner_is_not_ready() {
    let (server, _) = HttpServer::start(&[], &[]);
    let run = json!({"skill": "python-math", "command": "true"});
    server
        .request_json("", "POST", "/v1/runs?wait=100", Some(&run))
        .expect_status(200);
    server.request_json("", "GET", "/readyz", None).expect_status(200);
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", server.pid())).unwrap();
    for child in children.split_whitespace() {
        let pid = rustix::process::Pid::from_raw(child.parse().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
    wait_until("the server is not ready", || {
        server.request_json("", "GET", "/readyz", None).status == 503
    });
    assert_eq!(
        server
            .request_json("", "POST", "/v1/runs?wait=100", Some(&run))
            .error()
            .1,
        "executor_unavailable"
    );
}
