//! Malformed requests: unknown keys, wrong types, text that is not a request.

use serde_json::json;

use super::assert_request_refused;
use crate::harness::Fixture;

#[test]
fn unknown_keys_are_named() {
    let fixture = Fixture::new();
    assert_request_refused(&fixture, json!({"comand": "echo it ran"}), "invalid_request", "comand");
    assert_request_refused(
        &fixture,
        json!({"command": "echo it ran", "outputs": {"glob": []}}),
        "invalid_request",
        "outputs.glob",
    );
    assert_request_refused(
        &fixture,
        json!({"command": "echo it ran", "inputs": [{"from": "skill://probe/SKILL.md", "dst": "x"}]}),
        "invalid_request",
        "inputs[0].dst",
    );
    assert_request_refused(
        &fixture,
        json!({"command": "echo it ran", "Timeout": 1}),
        "invalid_request",
        "Timeout",
    );
    let answer = fixture.request(json!({"comand": "echo it ran"})).run();
    assert!(
        answer["error"]["message"].as_str().unwrap().contains("comand"),
        "{}",
        answer.describe()
    );
}

#[test]
fn wrong_types_are_named() {
    let fixture = Fixture::new();
    for (request, field) in [
        (json!({"command": 7}), "command"),
        (json!({"command": ["echo", "it ran"]}), "command"),
        (json!({"argv": "echo it ran"}), "argv"),
        (json!({"argv": ["echo", 1]}), "argv[1]"),
        (json!({"command": "echo it ran", "timeout": "soon"}), "timeout"),
        (json!({"command": "echo it ran", "env": ["A=1"]}), "env"),
        (json!({"command": "echo it ran", "env": {"A": 1}}), "env.A"),
        (
            json!({"command": "echo it ran", "output_files": "out/*"}),
            "output_files",
        ),
        (json!({"command": "echo it ran", "inputs": {"from": "x"}}), "inputs"),
        (
            json!({"command": "echo it ran", "inputs": [["skill://probe/SKILL.md"]]}),
            "inputs[0]",
        ),
        (json!({"command": "echo it ran", "outputs": [["out/*"]]}), "outputs"),
        (
            json!({"command": "echo it ran", "inputs": [{"to": "work/x"}]}),
            "inputs[0].from",
        ),
        (
            json!({"command": "echo it ran", "inputs": [{"from": "skill://probe/SKILL.md", "mode": "move"}]}),
            "inputs[0].mode",
        ),
        (
            json!({"command": "echo it ran", "outputs": {"max_files": -1}}),
            "outputs.max_files",
        ),
        (
            json!({"command": "echo it ran", "outputs": {"max_files": 1.5}}),
            "outputs.max_files",
        ),
        (
            json!({"command": "echo it ran", "save_as_artifacts": "yes"}),
            "save_as_artifacts",
        ),
        (json!({"command": "echo it ran", "executor": "cloud"}), "executor"),
    ] {
        assert_request_refused(&fixture, request, "invalid_request", field);
    }
}

#[test]
fn malformed_requests_are_refused() {
    let fixture = Fixture::new();
    for text in [
        "",
        "{",
        "[]",
        "null",
        "\"run\"",
        "{\"skill\": \"probe\", \"command\": \"echo it ran\"} trailing",
        "{\"skill\": \"probe\", \"command\": \"echo it ran\"} {\"skill\": \"probe\", \"command\": \"true\"}",
        "[\"probe\", \"echo it ran\"]",
        "{\"skill\": \"probe\", \"command\": \"echo it ran\", \"env\": {\"A\": \"1\", \"A\": \"2\"}}",
        "{\"skill\": \"probe\", \"skill\": \"probe\", \"command\": \"echo it ran\"}",
        "\u{feff}nonsense",
    ] {
        let answer = fixture.command(&["run", "--json", "--request", "-"]).stdin(text).run();
        assert_eq!(
            (answer.expect_refusal().0, answer.code),
            ("invalid_request", Some(125)),
            "{text:?}: {}",
            answer.describe()
        );
        let field = &answer["error"]["field"];
        assert!(*field != "." && *field != "?", "{text:?}: {field}");
    }
    let bytes = b"{\"skill\": \"probe\", \"command\": \"echo \xff\"}".to_vec();
    let answer = fixture.command(&["run", "--json", "--request", "-"]).stdin(bytes).run();
    assert_eq!((answer.expect_refusal().0, answer.code), ("invalid_request", Some(125)));
    let answer = fixture
        .command(&["run", "--json", "--request", "/nonexistent/request.json"])
        .run();
    assert_eq!(answer.code, Some(125), "{}", answer.describe());
}
