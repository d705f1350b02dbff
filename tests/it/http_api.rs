//! `skillbox serve`: each route, and its description.

use serde_json::{Value, json};

use crate::harness::{HttpResponse, HttpServer, program, run_to_completion, wait_until};

fn server() -> HttpServer {
    HttpServer::start(&[], &[]).0
}

fn get(server: &HttpServer, path: &str) -> HttpResponse {
    server.request_json("", "GET", path, None)
}

fn post(server: &HttpServer, path: &str, body: Value) -> HttpResponse {
    server.request_json("", "POST", path, Some(&body))
}

#[test]
fn skills_are_listed_searched_and_described() {
    let server = server();
    let all = get(&server, "/v1/skills").expect_status(200);
    assert_eq!(all["skills"].as_array().unwrap().len(), 7);
    let found = get(&server, "/v1/skills?query=csv-report&limit=1").expect_status(200);
    assert_eq!(found["skills"][0]["name"], "csv-report");
    assert_eq!(found["skills"][0]["rank"], "exact_name");
    let one = get(&server, "/v1/skills/csv-report").expect_status(200);
    assert!(one["digest"].as_str().unwrap().starts_with("sha256:"));
    assert_eq!(one["resources"]["script"][0], "scripts/report.py");
    let missing = get(&server, "/v1/skills/csv-repot");
    assert_eq!(missing.error(), (404, "unknown_skill".to_owned()));
    assert!(
        missing.text().contains("csv-report"),
        "the error names the nearest skills"
    );
}

#[test]
fn a_session_is_created_used_and_removed() {
    let server = server();
    let created = post(&server, "/v1/sessions", json!({"id": "s1"})).expect_status(201);
    assert_eq!(created["id"], "s1");
    assert_eq!(
        post(&server, "/v1/sessions", json!({"id": "s1"})).error(),
        (409, "already_exists".to_owned())
    );
    let generated = server.request_json("", "POST", "/v1/sessions", None).expect_status(201);
    assert_ne!(generated["id"], "s1");
    assert_eq!(
        get(&server, "/v1/sessions").expect_status(200)["sessions"]
            .as_array()
            .unwrap()
            .len(),
        2
    );

    let loaded = post(
        &server,
        "/v1/sessions/s1/tools/skill_load",
        json!({"skill": "csv-report"}),
    )
    .expect_status(200);
    assert!(loaded["instructions"].as_str().unwrap().contains("# CSV report"));
    assert_eq!(loaded["state_delta"][0]["op"], "load");
    let shown = get(&server, "/v1/sessions/s1").expect_status(200);
    assert_eq!(shown["loaded"][0]["skill"], "csv-report");
    let prompt = get(&server, "/v1/sessions/s1/prompt").expect_status(200);
    assert!(prompt["prompt"].as_str().unwrap().contains("# CSV report"));
    let full = post(
        &server,
        "/v1/sessions/s1/tools/skill_list_docs?answer=full",
        json!({"skill": "csv-report"}),
    );
    assert_eq!(full.expect_status(200)["result"][0], "references/report.md");
    let other = post(
        &server,
        "/v1/sessions/s1/tools/load_skill?dialect=deepagents",
        json!({"skill_name": "csv-report"}),
    );
    assert_eq!(other.status, 200, "{}", other.text());

    let run = json!({"skill": "python-math", "command": "echo kept > $WORK_DIR/x; cat $WORK_DIR/x"});
    let report = post(&server, "/v1/sessions/s1/tools/skill_run", run).expect_status(200);
    assert_eq!((&report["stdout"], &report["exit_code"]), (&json!("kept\n"), &json!(0)));
    let file = get(&server, "/v1/sessions/s1/files/work/x");
    assert_eq!((file.status, file.text()), (200, "kept\n".to_owned()));
    assert_eq!(
        get(&server, "/v1/sessions/s1/files/work/..%2F..%2Fsession.json").error(),
        (400, "path_escape".to_owned())
    );

    assert_eq!(server.request_json("", "DELETE", "/v1/sessions/s1", None).status, 204);
    assert_eq!(
        get(&server, "/v1/sessions/s1").error(),
        (404, "session_unknown".to_owned())
    );
    assert!(!server.state_path("sessions/s1").exists());
}

#[test]
fn tools_equal_those_of_the_command_line() {
    let server = server();
    post(&server, "/v1/sessions", json!({"id": "s1"})).expect_status(201);
    for (query, words) in [
        ("", vec![]),
        (
            "?dialect=trpc&format=openai",
            vec!["--dialect", "trpc", "--format", "openai"],
        ),
        (
            "?dialect=deepagents&format=anthropic",
            vec!["--dialect", "deepagents", "--format", "anthropic"],
        ),
        ("?dialect=agentskills", vec!["--dialect", "agentskills"]),
    ] {
        let served = get(&server, &format!("/v1/sessions/s1/tools{query}")).expect_status(200);
        let mut command = program(env!("CARGO_BIN_EXE_skillbox"));
        command
            .arg("tools")
            .args(words)
            .arg("--skills")
            .arg(crate::workspace::root().join("skills"));
        let printed = run_to_completion(&mut command, b"", std::time::Duration::from_secs(120)).stdout;
        assert_eq!(served, serde_json::from_slice::<Value>(&printed).unwrap(), "{query}");
    }
    let refused = get(&server, "/v1/sessions/s1/tools?format=yaml");
    assert_eq!(refused.error(), (400, "invalid_request".to_owned()));
    let unknown = post(&server, "/v1/sessions/s1/tools/no_such_tool", json!({}));
    assert_eq!(unknown.error(), (404, "unknown_tool".to_owned()));
}

#[test]
fn artifacts_are_stored_read_in_ranges_and_removed() {
    let server = server();
    let put = |body: &[u8]| server.request("PUT", "/v1/artifacts/data/table.csv", &[], body);
    assert_eq!(
        put(b"a,b\n1,2\n").expect_status(201)["ref"],
        "artifact://data/table.csv@0"
    );
    assert_eq!(put(b"a,b\n3,4\n").expect_status(201)["version"], 1);
    let list = |path: &str| {
        get(&server, path).expect_status(200)["artifacts"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(
        (list("/v1/artifacts"), list("/v1/artifacts?name=data/table.csv")),
        (1, 2)
    );

    let whole = get(&server, "/v1/artifacts/data/table.csv@0");
    assert_eq!((whole.status, whole.text()), (200, "a,b\n1,2\n".to_owned()));
    assert_eq!(whole.header("content-type"), Some("text/csv"));
    assert_eq!(whole.header("content-disposition"), Some("attachment"));
    let part = server.request("GET", "/v1/artifacts/data%2Ftable.csv", &[("Range", "bytes=4-6")], b"");
    assert_eq!((part.status, part.text()), (206, "3,4".to_owned()));
    assert_eq!(part.header("content-range"), Some("bytes 4-6/8"));
    let beyond = server.request("GET", "/v1/artifacts/data/table.csv", &[("Range", "bytes=8-")], b"");
    assert_eq!(beyond.error(), (416, "invalid_request".to_owned()));
    assert_eq!(beyond.header("content-range"), Some("bytes */8"));

    let run = json!({
        "skill": "python-math", "command": "cat inputs/table.csv; echo done > $OUTPUT_DIR/r.txt",
        "inputs": [{"from": "artifact://data/table.csv"}], "output_files": ["out/*.txt"], "save_as_artifacts": true,
    });
    let report = post(&server, "/v1/runs?wait=100", run).expect_status(200);
    assert_eq!(report["stdout"], "a,b\n3,4\n");
    assert_eq!(get(&server, "/v1/artifacts/out/r.txt").text(), "done\n");

    post(&server, "/v1/sessions", json!({"id": "s1"})).expect_status(201);
    assert_eq!(list("/v1/artifacts?session=s1"), 0, "a session has its own artifacts");
    let missing = get(&server, "/v1/artifacts/data/table.csv?session=s1");
    assert_eq!(missing.error(), (404, "artifact_missing".to_owned()));
    assert_eq!(get(&server, "/v1/artifacts?session=none").error().0, 404);

    let remove = |path: &str| server.request_json("", "DELETE", path, None);
    assert_eq!(
        remove("/v1/artifacts/data/table.csv").expect_status(200)["artifacts"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(
        remove("/v1/artifacts/data/table.csv").error(),
        (404, "artifact_missing".to_owned())
    );
    let named = server.request("PUT", "/v1/artifacts/x@3", &[], b"x");
    assert_eq!(named.error(), (400, "invalid_request".to_owned()));
}

#[test]
fn every_error_is_the_error_object() {
    let server = server();
    let check = |answer: HttpResponse, status: u16, code: &str| {
        assert_eq!(answer.error(), (status, code.to_owned()), "{}", answer.text());
        assert!(answer.header("x-request-id").is_some());
        answer
    };
    check(get(&server, "/nowhere"), 404, "not_found");
    check(get(&server, "/v1/skills?bogus=1"), 400, "invalid_request");
    let wrong_method = check(
        server.request_json("", "DELETE", "/v1/skills", None),
        405,
        "invalid_request",
    );
    assert!(wrong_method.header("allow").unwrap().contains("GET"));
    let json = [("Content-Type", "application/json")];
    let raw = |body: &[u8]| server.request("POST", "/v1/runs?wait=1", &json, body);
    check(raw(b"{\"skill\":"), 400, "invalid_request");
    check(raw(b"\xff\xfe"), 400, "invalid_request");
    check(raw(b"[]"), 400, "invalid_request");
    check(raw("[".repeat(100_000).as_bytes()), 400, "invalid_request");
    check(
        server.request_json("", "POST", "/v1/runs", None),
        400,
        "invalid_request",
    );
    check(server.request("POST", "/v1/runs", &[], b"{}"), 415, "invalid_request");
    let unknown = check(
        post(&server, "/v1/runs", json!({"skill": "x", "comand": "y"})),
        400,
        "invalid_request",
    );
    assert!(unknown.text().contains("`comand`"), "{}", unknown.text());
    let nested = check(
        post(
            &server,
            "/v1/runs",
            json!({"skill": "x", "outputs": {"max_files": "many"}}),
        ),
        400,
        "invalid_request",
    );
    assert_eq!(nested.json()["error"]["field"], "outputs.max_files");
    check(
        post(&server, "/v1/runs?wait=-1", json!({"skill": "x"})),
        400,
        "invalid_request",
    );
    check(
        post(&server, "/v1/runs?wait=NaN", json!({"skill": "x"})),
        400,
        "invalid_request",
    );
    check(
        post(&server, "/v1/runs?wait=9", json!({"skill": "nope", "command": "true"})),
        404,
        "unknown_skill",
    );
    check(
        post(&server, "/v1/sessions", json!({"id": "../x"})),
        400,
        "invalid_request",
    );
    check(get(&server, "/v1/skills/%ff"), 400, "invalid_request");
    let own = server.request("GET", "/nowhere", &[("X-Request-Id", "mine-1")], b"");
    assert_eq!(own.header("x-request-id"), Some("mine-1"));
    let long = "x".repeat(300);
    let not_own = server.request("GET", "/nowhere", &[("X-Request-Id", &long)], b"");
    assert_ne!(not_own.header("x-request-id"), Some(long.as_str()));
    // `20.0` is a whole number.
    let run = json!({"skill": "python-math", "command": "true", "timeout": 20.0, "outputs": {"max_files": 7.0}});
    assert_eq!(
        post(&server, "/v1/runs?wait=100", run).expect_status(200)["exit_code"],
        0
    );
}

#[test]
fn health_metrics_and_api_description_are_served() {
    let server = server();
    assert_eq!(get(&server, "/healthz").expect_status(200)["status"], "ok");
    assert_eq!(get(&server, "/readyz").expect_status(200)["status"], "ready");
    post(
        &server,
        "/v1/runs?wait=100",
        json!({"skill": "python-math", "command": "true"}),
    )
    .expect_status(200);
    let metrics = get(&server, "/metrics").text();
    for line in [
        "skillbox_runs_total{skill=\"python-math\",profile=\"default\",ended_by=\"exit\"} 1",
        "skillbox_run_duration_seconds_count 1",
        "skillbox_runs_queued 0",
        "skillbox_sessions 0",
        "skillbox_http_requests_total{method=\"GET\",route=\"/healthz\",status=\"200\"} 1",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} in\n{metrics}");
    }
    let document = get(&server, "/openapi.json").expect_status(200);
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["paths"].as_object().unwrap().len(), 19);
    for reference in document.to_string().split("\"#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(document["components"]["schemas"][name].is_object(), "{name}");
    }
    let page = get(&server, "/docs");
    assert!(page.text().contains("/v1/runs/{id}/events") && !page.text().contains("<script"));
    assert!(
        page.header("content-security-policy")
            .unwrap()
            .starts_with("default-src 'none'")
    );
}

#[test]
fn the_request_id_appears_in_the_log_of_its_run() {
    let (server, tokens) = HttpServer::start(&["--log", "info"], &["alice"]);
    let bearer = format!("Bearer {}", tokens[0]);
    let headers = [
        ("Content-Type", "application/json"),
        ("Authorization", bearer.as_str()),
        ("X-Request-Id", "mine-9"),
    ];
    let run = json!({"skill": "python-math", "command": "true"}).to_string();
    server
        .request("POST", "/v1/runs?wait=100", &headers, run.as_bytes())
        .expect_status(200);
    let line_of = |name: &str| {
        let log = server.log_text();
        let found = log
            .lines()
            .find(|line| line.contains(name) && line.contains("\"request_id\":\"mine-9\""));
        found.map(|line| serde_json::from_str::<Value>(line).unwrap())
    };
    wait_until("the spans of the run are logged", || line_of("workspace.run").is_some());
    wait_until("the span of the request is logged", || {
        line_of("\"status\":200").is_some()
    });
    assert!(server.log_text().contains("\"tenant\":\"alice\""));
    assert!(!server.log_text().contains(&tokens[0]), "a token is never logged");
}

#[test]
fn spans_are_exported_to_a_collector() {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let (mut server, _) = HttpServer::start(&["--otlp-endpoint", &endpoint, "--grace", "1"], &[]);
    let collector = std::thread::spawn(move || {
        let mut received = Vec::new();
        let contains = |bytes: &[u8], word: &str| bytes.windows(word.len()).any(|part| part == word.as_bytes());
        while !(contains(&received, "http.request") && contains(&received, "workspace.run")) {
            let (mut stream, _) = listener.accept().unwrap();
            stream
                .set_read_timeout(Some(std::time::Duration::from_secs(2)))
                .unwrap();
            let mut buffer = [0; 64 << 10];
            // The client waits for the response, so that a pause is the end of its request.
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                received.extend_from_slice(&buffer[..count]);
            }
            let _closed = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
        received
    });
    let run = json!({"skill": "python-math", "command": "true"});
    let response = server.request(
        "POST",
        "/v1/runs?wait=100",
        &[("Content-Type", "application/json"), ("X-Request-Id", "traced-1")],
        run.to_string().as_bytes(),
    );
    response.expect_status(200);
    server.signal(rustix::process::Signal::TERM);
    assert!(server.wait_for_exit().success());
    let sent = String::from_utf8_lossy(&collector.join().unwrap()).into_owned();
    assert!(
        sent.starts_with("POST /v1/traces HTTP/1.1\r\n"),
        "{}",
        &sent[..sent.len().min(80)]
    );
    assert!(sent.contains("traced-1"), "the span has the id of the request");
}
