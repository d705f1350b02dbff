//! The contract, section 3: changes on disk enter a session at the start of a turn, over every interface.

use std::cell::RefCell;

use serde_json::{Value, json};

use super::mcp_text_client::McpTextClient;
use super::skill_dir::SkillDir;
use crate::harness::{HttpServer, program, run_to_completion, wait_until};

/// What the interface under test does; each call returns the names of the skills in the answer of `skill_list`.
struct Host<'h> {
    list: &'h dyn Fn() -> Vec<String>,
    start_turn: &'h dyn Fn() -> bool,
}

fn names(listed: &Value) -> Vec<String> {
    let skills = listed["skills"].as_array().unwrap_or_else(|| panic!("{listed}"));
    skills
        .iter()
        .map(|skill| skill["name"].as_str().unwrap().to_owned())
        .collect()
}

fn check(skills: &SkillDir, host: &Host<'_>) {
    assert_eq!((host.list)(), ["one", "two"]);
    skills.write("three", "description: d", "");
    skills.remove("one");
    assert_eq!((host.list)(), ["one", "two"], "the turn goes on");
    assert!((host.start_turn)(), "the next turn starts with changes");
    assert_eq!((host.list)(), ["three", "two"]);
    assert!(!(host.start_turn)(), "nothing has changed since");
}

fn two_skills() -> SkillDir {
    let skills = SkillDir::new();
    skills
        .write("one", "description: d", "")
        .write("two", "description: d", "");
    skills
}

#[test]
fn contract_3_changes_enter_at_the_start_of_a_turn_on_the_command_line() {
    let skills = two_skills();
    let call = |tool: &str| -> Value {
        let mut command = program(env!("CARGO_BIN_EXE_skillbox"));
        command
            .arg("--skills")
            .arg(skills.skills())
            .arg("--state-dir")
            .arg(skills.state());
        command.args(["call", tool, "--session", "s"]);
        let ended = run_to_completion(&mut command, b"", std::time::Duration::from_secs(120));
        serde_json::from_slice(&ended.stdout).unwrap()
    };
    let host = Host {
        list: &|| names(&call("skill_list")),
        start_turn: &|| call("before_agent")["changed"] == true,
    };
    check(&skills, &host);
}

#[test]
fn contract_3_changes_enter_at_the_start_of_a_turn_over_http() {
    let skills = two_skills();
    let shipped = json!({"skills": ["one", "two", "three"]});
    let (server, _) = HttpServer::start(&["--skills", skills.skills().to_str().unwrap()], &[]);
    let post = |path: &str, body: &Value| server.request_json("", "POST", path, Some(body));
    post("/v1/sessions", &json!({"id": "s"})).expect_status(201);
    let call = |tool: &str, body: &Value| post(&format!("/v1/sessions/s/tools/{tool}"), body).expect_status(200);
    // The server also has the shipped skills, which this agent does not see.
    call("before_agent", &shipped);
    let host = Host {
        list: &|| names(&call("skill_list", &json!({}))),
        start_turn: &|| call("before_agent", &shipped)["changed"] == true,
    };
    check(&skills, &host);
}

/// The prompt of a turn keeps its bytes, also when the files of a loaded skill change or disappear.
#[test]
fn contract_3_the_prompt_of_a_turn_keeps_its_bytes_over_http() {
    let skills = two_skills();
    skills.write("one", "description: d", "First text.\n");
    let (server, _) = HttpServer::start(&["--skills", skills.skills().to_str().unwrap()], &[]);
    let post = |path: &str, body: &Value| server.request_json("", "POST", path, Some(body));
    post("/v1/sessions", &json!({"id": "s"})).expect_status(201);
    let call = |tool: &str, body: Value| post(&format!("/v1/sessions/s/tools/{tool}"), &body).expect_status(200);
    let prompt = || {
        let answer = server
            .request_json("", "GET", "/v1/sessions/s/prompt", None)
            .expect_status(200);
        answer["prompt"].as_str().unwrap().to_owned()
    };
    call("skill_load", json!({"skill": "one"}));
    let before = prompt();
    assert!(before.contains("First text."), "{before}");
    skills.write("one", "description: Other words.", "Second text.\n");
    assert_eq!(prompt(), before);
    skills.remove("one");
    assert_eq!(prompt(), before);
    skills.write("one", "description: Other words.", "Third text.\n");
    assert_eq!(prompt(), before);
    call("before_agent", json!({}));
    let after = prompt();
    assert!(
        after.contains("- one [Loaded]: Other words.") && after.contains("Third text."),
        "{after}"
    );
}

/// The text of `skill_list` names the skills in order.
fn names_in_text(text: &str) -> Vec<String> {
    let known = ["one", "two", "three"];
    let mut found: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|name| {
            Some((
                text.find(&format!("{name}:"))
                    .or_else(|| text.find(&format!("**{name}**")))?,
                name,
            ))
        })
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, name)| name.to_owned()).collect()
}

#[test]
fn contract_3_changes_enter_at_the_start_of_a_turn_over_mcp() {
    let skills = two_skills();
    let client = RefCell::new(McpTextClient::connect(&skills.skills(), &skills.state(), &[]));
    let host = Host {
        list: &|| names_in_text(&client.borrow_mut().call_ok("skill_list", json!({}))),
        start_turn: &|| {
            let text = client.borrow_mut().call_ok("before_agent", json!({}));
            text == "the turn starts with changes"
        },
    };
    check(&skills, &host);
}

/// A client of MCP has no turns of its own. When it asks for the tools, it learns which skills there are.
#[test]
fn contract_3_a_client_that_lists_the_tools_sees_the_current_skills() {
    let skills = two_skills();
    let mut client = McpTextClient::connect(&skills.skills(), &skills.state(), &[]);
    client.call_ok("skill_load", json!({"skill": "one"}));
    skills.write("three", "description: d", "Third.\n");
    wait_until("the server knows that the skill is new", || {
        let refused = client.call_refused("skill_load", json!({"skill": "three"}));
        assert!(refused.contains("unknown skill"), "{refused}");
        refused.contains("it was added after this turn started")
    });
    client.tool_names();
    assert!(
        client
            .call_ok("skill_load", json!({"skill": "three"}))
            .contains("Third.")
    );
    let again: String = client.call_ok("skill_list", json!({}));
    assert!(again.contains("one"), "a loaded skill stays: {again}");
}
