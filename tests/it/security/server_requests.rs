//! 3.12: requests that take the descriptors, slots, sessions or the trust of a server.

use std::fs;
use std::io::Write;

use serde_json::{Value, json};

use crate::harness::{HttpResponse, HttpServer, wait_until};

fn open_descriptors(server: &HttpServer) -> usize {
    fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap().count()
}

#[test]
fn h170_limits_of_a_request_are_capped_by_the_host() {
    let (server, _) = HttpServer::start(&["--max-inline", "1000", "--max-inputs", "2"], &[]);
    let run = |outputs: Value, inputs: usize| {
        let inputs: Vec<Value> = (0..inputs)
            .map(|index| json!({"from": "data:,x", "to": format!("work/inputs/{index}")}))
            .collect();
        let command = "head -c 5000 /dev/zero > out/a; head -c 5000 /dev/zero > out/b";
        let run = json!({"skill": "python-math", "command": command, "outputs": outputs, "inputs": inputs});
        server.request_json("", "POST", "/v1/runs?wait=100", Some(&run))
    };
    for field in ["max_file_bytes", "max_files", "max_total_bytes"] {
        let refused = run(json!({"globs": ["out/*"], field: 1_u64 << 50}), 0);
        assert_eq!(refused.error().1, "limit_exceeded");
        assert_eq!(refused.json()["error"]["field"], format!("outputs.{field}"));
    }
    let refused = run(json!({"globs": ["out/*"]}), 3);
    assert_eq!(refused.error().1, "limit_exceeded");
    assert_eq!(refused.json()["error"]["field"], "inputs");
    let report = run(
        json!({"globs": ["out/*"], "inline_binary": true, "max_file_bytes": 1000}),
        2,
    )
    .expect_status(200);
    let files = report["output_files"].as_array().unwrap();
    assert_eq!(files.len(), 2, "{report}");
    let inlined: usize = files
        .iter()
        .map(|file| file["content"].as_str().map_or(0, str::len))
        .sum();
    assert!(
        (1_000..1_500).contains(&inlined) && files.iter().all(|file| file["truncated"] == true),
        "all files together exceed the limit: {report}"
    );
}

#[test]
fn h171_refused_and_ended_runs_hold_no_descriptor() {
    let (server, _) = HttpServer::start(&[], &[]);
    let send = |run: &Value| server.request_json("", "POST", "/v1/runs?wait=100", Some(run));
    let works = json!({"skill": "python-math", "command": "true"});
    send(&works).expect_status(200);
    let before = open_descriptors(&server);
    for _ in 0..100 {
        assert_eq!(
            send(&json!({"skill": "missing", "command": "true"})).error().1,
            "unknown_skill"
        );
    }
    for _ in 0..20 {
        send(&works).expect_status(200);
    }
    // Parked sandboxes and connections that are being closed take a few.
    wait_until("the descriptors are closed", || {
        open_descriptors(&server) <= before + 16
    });
}

#[test]
fn h172_one_tenant_cannot_take_all_upload_slots() {
    let (server, tokens) = HttpServer::start(&[], &["greedy", "other"]);
    let start_slow_upload = || {
        let mut stream = server.connect();
        let (address, token) = (&server.address, &tokens[0]);
        write!(
            stream,
            "PUT /v1/artifacts/slow HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Content-Length: 5000\r\n\r\nabc"
        )
        .unwrap();
        stream
    };
    let put = |token: &str| {
        let bearer = format!("Bearer {token}");
        server.request("PUT", "/v1/artifacts/x", &[("Authorization", &bearer)], b"content")
    };
    let mut slow = Vec::new();
    // An upload that ends may have had the slot of a slow one, which was refused, so a slow one is added each time.
    wait_until("the slots of the tenant are taken", || {
        slow.push(start_slow_upload());
        put(&tokens[0]).status == 503
    });
    assert_eq!(put(&tokens[0]).error(), (503, "busy".to_owned()));
    put(&tokens[1]).expect_status(201);
    drop(slow);
    wait_until("the slots are free again", || put(&tokens[0]).status == 201);
}

#[test]
fn h173_a_server_without_tokens_accepts_only_its_own_address() {
    let (server, _) = HttpServer::start(&[], &[]);
    let port: u16 = server.address.rsplit_once(':').unwrap().1.parse().unwrap();
    let other_port = if port == 3000 { 3001 } else { 3000 };
    let get = |headers: &[(&str, &str)]| server.request("GET", "/v1/skills", headers, b"").status;
    let (own, local) = (format!("http://{}", server.address), format!("localhost:{port}"));
    assert_eq!(get(&[("Origin", &own)]), 200);
    assert_eq!(get(&[("Host", &local), ("Origin", &format!("http://{local}"))]), 200);
    for origin in [
        format!("http://127.0.0.1:{other_port}"),
        format!("http://localhost:{other_port}"),
        "http://localhost".to_owned(),
        format!("https://{local}"),
        "null".to_owned(),
    ] {
        assert_eq!(get(&[("Origin", &origin)]), 403, "{origin}");
    }
    for host in [
        format!("127.0.0.1:{other_port}"),
        "localhost".to_owned(),
        format!("example.org:{port}"),
    ] {
        assert_eq!(get(&[("Host", &host)]), 403, "{host}");
    }
}

#[test]
fn h174_deleting_a_session_during_runs_reveals_no_path() {
    let (server, _) = HttpServer::start(&[], &[]);
    let run = json!({"skill": "python-math", "command": "true", "session": "s1"});
    let check = |response: &HttpResponse| {
        let allowed = [200, 201, 204, 404, 409, 503];
        assert!(
            allowed.contains(&response.status),
            "{} {}",
            response.status,
            response.text()
        );
        if response.status >= 400 {
            assert!(!response.text().contains("state/"), "{}", response.text());
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..15 {
                    check(&server.request_json("", "POST", "/v1/sessions", Some(&json!({"id": "s1"}))));
                    check(&server.request_json("", "POST", "/v1/runs?wait=100", Some(&run)));
                    check(&server.request_json("", "DELETE", "/v1/sessions/s1", None));
                }
            });
        }
    });
}
