//! Runs that take long, for clients that know tasks.

use serde_json::json;

use super::world::{Listening, World, python, shipped};

#[test]
fn a_long_run_becomes_a_task_and_a_cancelled_one_is_killed() {
    let Some(python) = python() else { return };
    let world = World::new();
    let on_stdio = world.play(&python, "task", "auto", &[], &shipped());
    let server = Listening::start(&world);
    let over_http = world.talk(&python, &server.address, "task", "auto", &[]);
    server.stop(&world);
    for told in [on_stdio, over_http] {
        assert_eq!(
            (&told["short"], &told["short_made"]),
            (&json!("short\n"), &json!(0)),
            "what is over at once is no task"
        );
        let created = &told["created"];
        assert_eq!(created["status"], "working", "{created}");
        assert!(
            created["ttlMs"].is_u64() && created["pollIntervalMs"].is_u64(),
            "{created}"
        );
        assert!(
            told["messages"].as_array().unwrap().contains(&json!("halfway")),
            "{told}"
        );
        // The client has held it against the tool's output schema.
        assert_eq!(told["long"]["exit_code"], 0);
        assert_eq!(told["raw"], "Yf8=", "its files are the session's");
        let acknowledged = json!({"_meta": null, "resultType": "complete"});
        assert_eq!(told["acknowledged"], json!([acknowledged, acknowledged]));
        assert_eq!(told["again"], "completed", "a task that has ended stays as it is");
        assert_eq!(told["unknown"], json!([-32602, -32602, -32602]));
        assert_eq!(
            (&told["ended"], &told["after"]),
            (&json!("cancelled"), &json!("after\n"))
        );
        assert!(told["waited"].as_f64().unwrap() < 10.0, "{told}");
    }
}

#[test]
fn s27_a_task_ends_with_its_session_and_is_no_other_clients_business() {
    let Some(python) = python() else { return };
    let world = World::new();
    let told = world.play(&python, "task_left", "auto", &[], &shipped());
    let left = told["task"].as_str().unwrap();
    let told = world.play(&python, "look", "auto", &[left], &shipped());
    assert_eq!(told["code"], -32602);

    // A client with a session of its own does not find the task of one that has none, whoever told it the name.
    let server = Listening::start(&world);
    let told = world.talk(&python, &server.address, "task_left", "auto", &[]);
    let left = told["task"].as_str().unwrap();
    let told = world.talk(&python, &server.address, "look", "auto", &[left]);
    assert_eq!(
        told["code"]["status"], "working",
        "its own client comes back by its name"
    );
    let told = world.talk(&python, &server.address, "look_legacy", "legacy", &[left]);
    assert_eq!(told["code"], -32602);
    server.stop(&world);
}
