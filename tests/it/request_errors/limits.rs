//! Limits of nothing or too much, and results that could not be kept.

use serde_json::json;

use super::refused;
use crate::lab::Scene;

#[test]
fn limits_of_nothing_or_too_much_are_refused() {
    let scene = Scene::new();
    for timeout in [json!(0), json!(-1), json!(-0.001)] {
        refused(
            &scene,
            json!({"command": "echo it ran", "timeout": timeout}),
            "invalid_request",
            "timeout",
        );
    }
    refused(
        &scene,
        json!({"command": "echo it ran", "timeout": 3600.5}),
        "limit_exceeded",
        "timeout",
    );
    refused(
        &scene,
        json!({"command": "echo it ran", "timeout": 1e300}),
        "limit_exceeded",
        "timeout",
    );
    refused(
        &scene,
        json!({"command": "echo it ran", "timeout": 601, "profile": "strict"}),
        "limit_exceeded",
        "timeout",
    );
    for key in ["max_files", "max_file_bytes", "max_total_bytes"] {
        refused(
            &scene,
            json!({"command": "echo it ran", "outputs": {"globs": ["out/*"], key: 0}}),
            "invalid_request",
            &format!("outputs.{key}"),
        );
    }
    refused(
        &scene,
        json!({"command": "echo it ran", "outputs": {"globs": ["out/*"], "max_files": 1_000_000_000}}),
        "limit_exceeded",
        "outputs.max_files",
    );
    for timeout in ["0", "-1", "soon", "3601"] {
        let answer = scene
            .tell(&[
                "run",
                "probe",
                "--json",
                &format!("--timeout={timeout}"),
                "--",
                "echo it ran",
            ])
            .go();
        assert_eq!(answer.code, Some(125), "{timeout}: {}", answer.told());
    }
}

#[test]
fn what_cannot_be_saved_is_refused_before_it_is_made() {
    let scene = Scene::new();
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
        refused(&scene, request, "invalid_request", field);
    }
}
