//! Long runs, for clients that support tasks.

use std::time::Duration;

use serde_json::json;

use super::fixture::{McpFixture, McpHttpServer, python, shipped_skills};
use crate::harness::assert_within;

#[test]
fn a_long_run_becomes_a_task_and_a_cancelled_task_is_killed() {
    let Some(python) = python() else { return };
    let fixture = McpFixture::new();
    let on_stdio = fixture.run_scenario(&python, "task", "auto", &[], &shipped_skills());
    let server = McpHttpServer::start(&fixture);
    let over_http = fixture.run_scenario_over_http(&python, &server.address, "task", "auto", &[]);
    server.stop(&fixture);
    for result in [on_stdio, over_http] {
        assert_eq!(
            (&result["short"], &result["tasks_of_short_run"]),
            (&json!("short\n"), &json!(0)),
            "a short run does not become a task"
        );
        let created = &result["created"];
        assert_eq!(created["status"], "working", "{created}");
        assert!(
            created["ttlMs"].is_u64() && created["pollIntervalMs"].is_u64(),
            "{created}"
        );
        assert!(
            result["messages"].as_array().unwrap().contains(&json!("halfway")),
            "{result}"
        );
        // The client has validated it against the tool's output schema.
        assert_eq!(result["long"]["exit_code"], 0);
        assert_eq!(result["raw"], "Yf8=", "its files are in the workspace of the session");
        let acknowledged = json!({"_meta": null, "resultType": "complete"});
        assert_eq!(result["acknowledged"], json!([acknowledged, acknowledged]));
        assert_eq!(result["again"], "completed", "an ended task keeps its state");
        assert_eq!(result["unknown"], json!([-32602, -32602, -32602]));
        assert_eq!(
            (&result["ended"], &result["after"]),
            (&json!("cancelled"), &json!("after\n"))
        );
        let waited = Duration::from_secs_f64(result["waited"].as_f64().unwrap());
        assert_within(waited, Duration::from_secs(10), "a cancelled task and the next run");
    }
}

#[test]
fn s27_a_task_ends_with_its_session_and_is_hidden_from_other_clients() {
    let Some(python) = python() else { return };
    let fixture = McpFixture::new();
    let result = fixture.run_scenario(&python, "task_left", "auto", &[], &shipped_skills());
    let task = result["task"].as_str().unwrap();
    let result = fixture.run_scenario(&python, "look", "auto", &[task], &shipped_skills());
    assert_eq!(result["code"], -32602);

    // A client with a session of its own cannot see the task of a client without one, even by its id.
    let server = McpHttpServer::start(&fixture);
    let result = fixture.run_scenario_over_http(&python, &server.address, "task_left", "auto", &[]);
    let task = result["task"].as_str().unwrap();
    let result = fixture.run_scenario_over_http(&python, &server.address, "look", "auto", &[task]);
    assert_eq!(result["code"]["status"], "working", "its own client finds it by its id");
    let result = fixture.run_scenario_over_http(&python, &server.address, "look_legacy", "legacy", &[task]);
    assert_eq!(result["code"], -32602);
    server.stop(&fixture);
}
