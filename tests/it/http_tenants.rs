//! Authentication, and the isolation of tenants from each other.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{HttpServer, program, run_to_completion};

#[test]
fn resources_of_another_tenant_are_not_found() {
    let (server, tokens) = HttpServer::start(&[], &["alice", "bob"]);
    let (alice, bob) = (tokens[0].as_str(), tokens[1].as_str());
    let run = json!({"skill": "python-math", "command": "echo mine > $OUTPUT_DIR/x", "session": "s1"});
    server
        .request_json(alice, "POST", "/v1/sessions", Some(&json!({"id": "s1"})))
        .expect_status(201);
    let report = server
        .request_json(alice, "POST", "/v1/runs?wait=100", Some(&run))
        .expect_status(200);
    let id = report["run_id"].as_str().unwrap();
    let artifact = server.request_json(alice, "PUT", "/v1/artifacts/a.txt", Some(&json!("secret")));
    artifact.expect_status(201);
    server
        .request_json(alice, "PUT", "/v1/artifacts/b.txt?session=s1", Some(&json!("secret")))
        .expect_status(201);

    let requests: Vec<(&str, String, Option<Value>)> = vec![
        ("GET", "/v1/sessions/s1".into(), None),
        ("GET", "/v1/sessions/s1/prompt".into(), None),
        ("GET", "/v1/sessions/s1/tools".into(), None),
        ("POST", "/v1/sessions/s1/tools/skill_list".into(), Some(json!({}))),
        ("GET", "/v1/sessions/s1/files/out/x".into(), None),
        ("POST", "/v1/runs?wait=100".into(), Some(run)),
        ("GET", format!("/v1/runs/{id}"), None),
        ("GET", format!("/v1/runs/{id}/events"), None),
        ("GET", "/v1/artifacts/a.txt".into(), None),
        ("GET", "/v1/artifacts/a.txt@0".into(), None),
        ("GET", "/v1/artifacts?name=a.txt".into(), None),
        ("GET", "/v1/artifacts?session=s1".into(), None),
        ("GET", "/v1/artifacts/b.txt?session=s1".into(), None),
        ("PUT", "/v1/artifacts/b.txt?session=s1".into(), Some(json!("x"))),
        ("DELETE", "/v1/artifacts/b.txt?session=s1".into(), None),
        ("DELETE", "/v1/artifacts/a.txt".into(), None),
        ("DELETE", format!("/v1/runs/{id}"), None),
        ("DELETE", "/v1/sessions/s1".into(), None),
    ];
    for (method, path, body) in &requests {
        let refused = server.request_json(bob, method, path, body.as_ref());
        assert_eq!(refused.error().0, 404, "{method} {path}: {}", refused.text());
    }
    for path in ["/v1/sessions", "/v1/runs", "/v1/artifacts"] {
        let listed = server.request_json(bob, "GET", path, None).expect_status(200);
        assert!(
            listed.as_object().unwrap().values().all(|list| list == &json!([])),
            "{path}: {listed}"
        );
    }
    let input = json!({"skill": "python-math", "command": "true", "inputs": [{"from": "artifact://a.txt"}]});
    let refused = server.request_json(bob, "POST", "/v1/runs?wait=100", Some(&input));
    assert_eq!(refused.error(), (404, "artifact_missing".to_owned()));
    // The control: the owner can use all of them.
    for (method, path, body) in &requests {
        let answer = server.request_json(alice, method, path, body.as_ref());
        assert!(answer.status < 300, "{method} {path}: {}", answer.text());
    }
    // The same name belongs to another session.
    server
        .request_json(bob, "POST", "/v1/sessions", Some(&json!({"id": "s1"})))
        .expect_status(201);
    assert!(server.state_path("tenants/bob/sessions/s1").is_dir());
    assert!(!server.state_path("tenants/alice/sessions/s1").exists());
}

#[test]
fn without_a_token_only_public_routes_answer() {
    let (server, tokens) = HttpServer::start(&[], &["alice"]);
    for (method, path) in [
        ("GET", "/v1/skills"),
        ("GET", "/v1/sessions"),
        ("POST", "/v1/runs"),
        ("PUT", "/v1/artifacts/x"),
        ("GET", "/metrics"),
    ] {
        for token in ["", "wrong", &tokens[0][..20], &tokens[0].to_uppercase()] {
            let refused = server.request_json(token, method, path, None);
            assert_eq!(
                refused.error(),
                (401, "unauthorized".to_owned()),
                "{path} with {token:?}"
            );
            assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
        }
        let basic = format!("Basic {}", tokens[0]);
        assert_eq!(
            server.request(method, path, &[("Authorization", &basic)], b"").status,
            401
        );
    }
    for path in ["/healthz", "/readyz", "/openapi.json", "/docs"] {
        assert_eq!(server.request_json("", "GET", path, None).status, 200, "{path}");
    }
    // With tokens the server accepts any host name.
    let bearer = format!("Bearer {}", tokens[0]);
    let named = [("Host", "skills.example.org"), ("Authorization", bearer.as_str())];
    assert_eq!(server.request("GET", "/v1/skills", &named, b"").status, 200);
    let document = server.request_json("", "GET", "/openapi.json", None).json();
    assert_eq!(
        document["paths"]["/v1/skills"]["get"]["security"],
        json!([{"token": []}])
    );
}

#[test]
fn without_tokens_foreign_hosts_and_origins_are_refused() {
    let (server, _) = HttpServer::start(&[], &[]);
    let with = |name: &str, value: &str| server.request("GET", "/v1/skills", &[(name, value)], b"");
    assert_eq!(
        with("Host", "evil.example.org").error(),
        (403, "unauthorized".to_owned())
    );
    assert_eq!(
        with("Origin", "https://evil.example.org").error(),
        (403, "unauthorized".to_owned())
    );
    assert_eq!(with("Origin", "null").error().0, 403);
    assert_eq!(with("Host", "localhost:1").status, 403);
    let own_origin = format!("http://{}", server.address);
    assert_eq!(with("Origin", &own_origin).status, 200);
    assert!(
        with("Origin", &own_origin)
            .header("access-control-allow-origin")
            .is_none()
    );

    let state = server.state_path("other");
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let mut command = program(env!("CARGO_BIN_EXE_skillbox"));
        command.args(["serve", "--listen", listen, "--state-dir"]).arg(&state);
        let output = run_to_completion(&mut command, b"", Duration::from_secs(120));
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains("no token is configured"), "{stderr}");
    }
}
