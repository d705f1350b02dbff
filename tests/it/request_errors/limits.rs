//! Errors about limits, and about outputs that could not be saved.

use serde_json::json;

use super::assert_request_refused;
use crate::harness::Fixture;

#[test]
fn zero_negative_and_excessive_limits_are_refused() {
    let fixture = Fixture::new();
    for timeout in [json!(0), json!(-1), json!(-0.001)] {
        assert_request_refused(
            &fixture,
            json!({"command": "echo it ran", "timeout": timeout}),
            "invalid_request",
            "timeout",
        );
    }
    assert_request_refused(
        &fixture,
        json!({"command": "echo it ran", "timeout": 3600.5}),
        "limit_exceeded",
        "timeout",
    );
    assert_request_refused(
        &fixture,
        json!({"command": "echo it ran", "timeout": 1e300}),
        "limit_exceeded",
        "timeout",
    );
    assert_request_refused(
        &fixture,
        json!({"command": "echo it ran", "timeout": 601, "profile": "strict"}),
        "limit_exceeded",
        "timeout",
    );
    for key in ["max_files", "max_file_bytes", "max_total_bytes"] {
        assert_request_refused(
            &fixture,
            json!({"command": "echo it ran", "outputs": {"globs": ["out/*"], key: 0}}),
            "invalid_request",
            &format!("outputs.{key}"),
        );
    }
    assert_request_refused(
        &fixture,
        json!({"command": "echo it ran", "outputs": {"globs": ["out/*"], "max_files": 1_000_000_000}}),
        "limit_exceeded",
        "outputs.max_files",
    );
    for timeout in ["0", "-1", "soon", "3601"] {
        let answer = fixture
            .command(&[
                "run",
                "probe",
                "--json",
                &format!("--timeout={timeout}"),
                "--",
                "echo it ran",
            ])
            .run();
        assert_eq!(answer.code, Some(125), "{timeout}: {}", answer.describe());
    }
}

#[test]
fn impossible_save_options_are_refused_before_the_run() {
    let fixture = Fixture::new();
    for (outputs, field) in [
        (json!({"outputs": {"save": true}}), "outputs.save"),
        (json!({"save_as_artifacts": true}), "save_as_artifacts"),
        (
            json!({"outputs": {"globs": ["out/*"], "save": true, "name_template": "../"}}),
            "outputs.name_template",
        ),
        (
            json!({"output_files": ["out/*"], "save_as_artifacts": true, "artifact_prefix": "/abs/"}),
            "artifact_prefix",
        ),
    ] {
        let mut request = outputs;
        request["command"] = json!("echo it ran");
        assert_request_refused(&fixture, request, "invalid_request", field);
    }
}
