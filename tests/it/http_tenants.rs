//! Who is let in, and what one tenant can find out about another: nothing.

use std::time::Duration;

use serde_json::{Value, json};

use crate::lab::{HttpServer, program, run_to_end};

#[test]
fn every_address_with_the_others_ids_gives_404() {
    let (server, tokens) = HttpServer::start(&[], &["alice", "bob"]);
    let (alice, bob) = (tokens[0].as_str(), tokens[1].as_str());
    let run = json!({"skill": "python-math", "command": "echo mine > $OUTPUT_DIR/x", "session": "s1"});
    server
        .json(alice, "POST", "/v1/sessions", Some(&json!({"id": "s1"})))
        .good(201);
    let report = server.json(alice, "POST", "/v1/runs?wait=30", Some(&run)).good(200);
    let id = report["run_id"].as_str().unwrap();
    let artifact = server.json(alice, "PUT", "/v1/artifacts/a.txt", Some(&json!("secret")));
    artifact.good(201);
    server
        .json(alice, "PUT", "/v1/artifacts/b.txt?session=s1", Some(&json!("secret")))
        .good(201);

    let requests: Vec<(&str, String, Option<Value>)> = vec![
        ("GET", "/v1/sessions/s1".into(), None),
        ("GET", "/v1/sessions/s1/prompt".into(), None),
        ("GET", "/v1/sessions/s1/tools".into(), None),
        ("POST", "/v1/sessions/s1/tools/skill_list".into(), Some(json!({}))),
        ("GET", "/v1/sessions/s1/files/out/x".into(), None),
        ("POST", "/v1/runs?wait=30".into(), Some(run)),
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
        let refused = server.json(bob, method, path, body.as_ref());
        assert_eq!(refused.error().0, 404, "{method} {path}: {}", refused.text());
    }
    for path in ["/v1/sessions", "/v1/runs", "/v1/artifacts"] {
        let listed = server.json(bob, "GET", path, None).good(200);
        assert!(
            listed.as_object().unwrap().values().all(|list| list == &json!([])),
            "{path}: {listed}"
        );
    }
    let input = json!({"skill": "python-math", "command": "true", "inputs": [{"from": "artifact://a.txt"}]});
    let refused = server.json(bob, "POST", "/v1/runs?wait=30", Some(&input));
    assert_eq!(refused.error(), (404, "artifact_missing".to_owned()));
    // The control: to its owner everything answers.
    for (method, path, body) in &requests {
        let answer = server.json(alice, method, path, body.as_ref());
        assert!(answer.status < 300, "{method} {path}: {}", answer.text());
    }
    // The same name is another session.
    server
        .json(bob, "POST", "/v1/sessions", Some(&json!({"id": "s1"})))
        .good(201);
    assert!(server.state("tenants/bob/sessions/s1").is_dir());
    assert!(!server.state("tenants/alice/sessions/s1").exists());
}

#[test]
fn without_a_token_only_the_doors_are_seen() {
    let (server, tokens) = HttpServer::start(&[], &["alice"]);
    for (method, path) in [
        ("GET", "/v1/skills"),
        ("GET", "/v1/sessions"),
        ("POST", "/v1/runs"),
        ("PUT", "/v1/artifacts/x"),
        ("GET", "/metrics"),
    ] {
        for token in ["", "wrong", &tokens[0][..20], &tokens[0].to_uppercase()] {
            let refused = server.json(token, method, path, None);
            assert_eq!(
                refused.error(),
                (401, "unauthorized".to_owned()),
                "{path} with {token:?}"
            );
            assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
        }
        let basic = format!("Basic {}", tokens[0]);
        assert_eq!(server.ask(method, path, &[("Authorization", &basic)], b"").status, 401);
    }
    for path in ["/healthz", "/readyz", "/openapi.json", "/docs"] {
        assert_eq!(server.json("", "GET", path, None).status, 200, "{path}");
    }
    // With tokens the server may have any name.
    let bearer = format!("Bearer {}", tokens[0]);
    let named = [("Host", "skills.example.org"), ("Authorization", bearer.as_str())];
    assert_eq!(server.ask("GET", "/v1/skills", &named, b"").status, 200);
    let document = server.json("", "GET", "/openapi.json", None).value();
    assert_eq!(
        document["paths"]["/v1/skills"]["get"]["security"],
        json!([{"token": []}])
    );
}

#[test]
fn without_tokens_other_machines_and_pages_are_not_let_in() {
    let (server, _) = HttpServer::start(&[], &[]);
    let with = |name: &str, value: &str| server.ask("GET", "/v1/skills", &[(name, value)], b"");
    assert_eq!(
        with("Host", "evil.example.org").error(),
        (403, "unauthorized".to_owned())
    );
    assert_eq!(
        with("Origin", "https://evil.example.org").error(),
        (403, "unauthorized".to_owned())
    );
    assert_eq!(with("Origin", "null").error().0, 403);
    assert_eq!(with("Host", "localhost:1").status, 200);
    assert_eq!(with("Origin", "http://localhost:8484").status, 200);
    assert!(
        with("Origin", "http://localhost:8484")
            .header("access-control-allow-origin")
            .is_none()
    );

    let state = server.state("other");
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let mut command = program(env!("CARGO_BIN_EXE_skillbox"));
        command.args(["serve", "--listen", listen, "--state-dir"]).arg(&state);
        let ended = run_to_end(&mut command, b"", Duration::from_secs(20));
        let told = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(2), "{told}");
        assert!(told.contains("no token is configured"), "{told}");
    }
}
