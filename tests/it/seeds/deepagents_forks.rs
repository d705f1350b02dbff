//! Sub-agents and forks, and the frontmatter that controls them.

use std::fs;

use serde_json::{Value, json};

use crate::cli::Cli;
use crate::disclosure::{call_ok, call_refused, prompt, write_skill};
use crate::harness::HttpServer;

fn cli_with_fork() -> Cli {
    let cli = Cli::new();
    write_skill(
        &cli,
        "survey",
        "description: Surveys.\ncontext: fork\nagent: Explore\nmodel: small\nallowed-tools: Read",
        "Look at $ARGUMENTS.\n",
    );
    write_skill(&cli, "plain", "description: Plain.\nmodel: large", "Body of plain.\n");
    call_ok(&cli, "before_agent", &json!({}), "--session s");
    cli
}

fn session_show(cli: &Cli, id: &str) -> Value {
    cli.run(&format!("session show {id} --json")).expect_code(0).json()
}

fn fork_survey(cli: &Cli) -> String {
    let arguments = json!({"skill": "survey", "arguments": "the tests"});
    let loaded = call_ok(cli, "skill_load", &arguments, "--session s");
    loaded["fork"]["session"]
        .as_str()
        .unwrap_or_else(|| panic!("{loaded}"))
        .to_owned()
}

#[test]
fn seed_000_section_8_1_context_fork_leaves_the_state_of_the_parent_untouched() {
    let cli = cli_with_fork();
    let state = cli.home_dir().join(".local/state/skillbox/sessions/s/state.json");
    let before = fs::read(&state).unwrap();
    let loaded = call_ok(&cli, "skill_load", &json!({"skill": "survey"}), "--session s");
    assert_eq!(
        (&loaded["fork"]["agent"], &loaded["fork"]["model"], &loaded["context"]),
        (&json!("Explore"), &json!("small"), &json!("fork"))
    );
    assert_eq!(loaded["state_delta"], json!([]));
    assert_eq!(fs::read(&state).unwrap(), before);
    let shown = session_show(&cli, "s");
    assert_eq!(shown["loaded"], json!([]));
    assert_eq!(shown["forks"][0]["session"], loaded["fork"]["session"]);
    assert_eq!(
        (&shown["forks"][0]["agent"], &shown["forks"][0]["returned"]),
        (&json!("Explore"), &json!(false))
    );
    // The tools that the forked skill declares do not restrict the parent.
    call_ok(
        &cli,
        "wrap_tool_call",
        &json!({"tool": "Write"}),
        "--session s --policy strict",
    );
}

#[test]
fn seed_000_section_8_1_the_fork_has_the_skill_loaded() {
    let cli = cli_with_fork();
    let fork = fork_survey(&cli);
    let shown = session_show(&cli, &fork);
    assert_eq!(
        (&shown["loaded"][0]["skill"], &shown["loaded"][0]["model"]),
        (&json!("survey"), &json!("small"))
    );
    let prompt = cli
        .run(&format!("prompt --skills skills --session {fork} --json"))
        .expect_code(0)
        .json();
    assert_eq!(
        (&prompt["model"], &prompt["loaded"]),
        (&json!("small"), &json!(["survey"]))
    );
    assert!(
        prompt["prompt"].as_str().unwrap().contains("Look at the tests."),
        "{prompt}"
    );
    let denied = call_refused(
        &cli,
        "wrap_tool_call",
        &json!({"tool": "Write"}),
        &format!("--session {fork} --policy strict"),
    );
    assert_eq!(denied["code"], "tool_not_allowed", "the fork obeys the skill");
    // A fork does not fork again.
    write_skill(&cli, "second", "description: d\ncontext: fork", "Body.\n");
    call_ok(&cli, "before_agent", &json!({}), &format!("--session {fork}"));
    let second = call_ok(
        &cli,
        "skill_load",
        &json!({"skill": "second"}),
        &format!("--session {fork}"),
    );
    assert_eq!(second.get("fork"), None, "{second}");
}

#[test]
fn seed_000_section_8_1_a_fork_returns_one_result() {
    let cli = cli_with_fork();
    let fork = fork_survey(&cli);
    let flags = format!("--session {fork}");
    let result = json!({"result": "Three files.\nTwo </skill_result> tests."});
    let returned = call_ok(&cli, "return_result", &result, &flags);
    assert_eq!(
        (&returned["parent"], &returned["skill"]),
        (&json!("s"), &json!("survey"))
    );
    let shown = prompt(&cli, "--session s");
    assert!(
        shown.contains("<skill_result skill=\"survey\">\nThree files.\nTwo "),
        "{shown}"
    );
    assert_eq!(shown.matches("</skill_result>").count(), 1, "{shown}");
    assert!(
        !prompt(&cli, "--session s").contains("Three files"),
        "the result is shown once"
    );
    assert_eq!(session_show(&cli, "s")["forks"][0]["returned"], true);
    let again = call_refused(&cli, "return_result", &result, &flags);
    assert_eq!(again["code"], "already_exists");
    let not_a_fork = call_refused(&cli, "return_result", &result, "--session s");
    assert_eq!(not_a_fork["code"], "invalid_request");
    let large = json!({"result": "x".repeat(70_000)});
    let large = call_refused(
        &cli,
        "return_result",
        &large,
        &format!("--session {}", fork_survey(&cli)),
    );
    assert_eq!(
        (&large["code"], &large["field"]),
        (&json!("limit_exceeded"), &json!("result"))
    );
}

#[test]
fn seed_000_section_8_1_forks_are_limited_and_removed_with_their_parent() {
    let cli = cli_with_fork();
    let forks: Vec<String> = (0..16).map(|_| fork_survey(&cli)).collect();
    let refused = call_refused(&cli, "skill_load", &json!({"skill": "survey"}), "--session s");
    assert_eq!(refused["code"], "load_limit", "{refused}");
    call_ok(
        &cli,
        "return_result",
        &json!({"result": 7}),
        &format!("--session {}", forks[0]),
    );
    fork_survey(&cli);
    cli.run("session rm s").expect_code(0);
    let sessions = cli.run("session list --json").expect_code(0).json();
    assert_eq!(sessions["sessions"], json!([]));
    assert_eq!(cli.run(&format!("session show {}", forks[1])).code, Some(1));
}

#[test]
fn seed_000_section_8_1_a_fork_in_the_dialect_deepagents() {
    let cli = cli_with_fork();
    let flags = "--session s --dialect deepagents";
    let loaded = call_ok(&cli, "load_skill", &json!({"skill_name": "survey"}), flags);
    assert_eq!(loaded["state_delta"], json!({}), "{loaded}");
    let text = loaded["content"].as_str().unwrap();
    assert!(
        text.starts_with("The skill survey runs in a context of its own (session fork-"),
        "{text}"
    );
    assert!(
        text.contains("agent Explore, model small") && text.contains("Look at $ARGUMENTS."),
        "{text}"
    );
    let unstored = call_ok(
        &cli,
        "load_skill",
        &json!({"skill_name": "survey"}),
        "--dialect deepagents",
    );
    assert_eq!(unstored["fork"], json!({"agent": "Explore", "model": "small"}));
    assert_eq!(unstored["state_delta"].get("skills_loaded"), None, "{unstored}");
    assert_eq!(session_show(&cli, "s")["forks"].as_array().unwrap().len(), 1);
}

#[test]
fn seed_000_section_8_1_forks_over_http() {
    let cli = cli_with_fork();
    let skills = cli.work_dir().join("skills");
    let (server, _) = HttpServer::start(&["--skills", skills.to_str().unwrap()], &[]);
    let post = |path: &str, body: Value| server.request_json("", "POST", path, Some(&body));
    let get = |path: &str| server.request_json("", "GET", path, None).expect_status(200);
    post("/v1/sessions", json!({"id": "p"})).expect_status(201);
    let loaded = post("/v1/sessions/p/tools/skill_load", json!({"skill": "survey"})).expect_status(200);
    let fork = loaded["fork"]["session"].as_str().unwrap();
    let parent = get("/v1/sessions/p");
    assert_eq!(
        (&parent["loaded"], &parent["forks"][0]["session"]),
        (&json!([]), &json!(fork))
    );
    assert_eq!(get(&format!("/v1/sessions/{fork}"))["loaded"][0]["model"], "small");
    assert_eq!(get(&format!("/v1/sessions/{fork}/prompt"))["model"], "small");
    post(
        &format!("/v1/sessions/{fork}/tools/return_result"),
        json!({"result": "Done."}),
    )
    .expect_status(200);
    let prompt = get("/v1/sessions/p/prompt");
    assert!(prompt["prompt"].as_str().unwrap().contains("Done."), "{prompt}");
    server.request_json("", "DELETE", "/v1/sessions/p", None);
    assert_eq!(
        server
            .request_json("", "GET", &format!("/v1/sessions/{fork}"), None)
            .status,
        404
    );
}

#[test]
fn seed_000_section_8_2_subagent_hooks_of_the_parent_fire_for_a_fork() {
    let cli = cli_with_fork();
    write_skill(
        &cli,
        "review",
        "description: d\nhooks:\n  SubagentStart:\n    - {matcher: Explore, type: prompt, prompt: It starts.}\n  SubagentStop:\n    - {matcher: Explore, hooks: [{type: command, command: bash check.sh}]}",
        "Body.\n",
    );
    cli.write_file(
        "skills/review/check.sh",
        "grep -q complete || { echo 'not complete' >&2; exit 2; }\n",
    );
    call_ok(&cli, "before_agent", &json!({}), "--session s");
    call_ok(&cli, "skill_load", &json!({"skill": "review"}), "--session s");
    let fork = fork_survey(&cli);
    assert!(prompt(&cli, "--session s").contains("- review: It starts."));
    let flags = format!("--session {fork}");
    let refused = call_refused(&cli, "return_result", &json!({"result": "half"}), &flags);
    assert!(
        refused["message"].as_str().unwrap().ends_with("not complete"),
        "{refused}"
    );
    call_ok(&cli, "return_result", &json!({"result": "complete"}), &flags);
}

#[test]
fn seed_000_section_8_3_subagent_inherit() {
    let cli = cli_with_fork();
    call_ok(&cli, "skill_load", &json!({"skill": "plain"}), "--session s");
    let loaded_by = |agent: &str| -> Vec<Value> {
        let shown = session_show(&cli, "s");
        let loaded = shown["loaded"].as_array().unwrap().iter();
        loaded.filter(|skill| skill["agent"] == agent).cloned().collect()
    };
    let start = |agent: &str, arguments: Value, flags: &str| {
        call_ok(
            &cli,
            "before_agent",
            &arguments,
            &format!("--session s --agent {agent} {flags}"),
        );
        loaded_by(agent).len()
    };
    assert_eq!(start("a", json!({"parent": "main"}), ""), 0, "isolated by default");
    assert_eq!(
        start("b", json!({"parent": "main", "subagent_inherit": "inherit"}), ""),
        1
    );
    assert_eq!(start("c", json!({"parent": "main", "inheritance": "inherit"}), ""), 1);
    assert_eq!(start("d", json!({"parent": "main"}), "--subagent-inherit inherit"), 1);
    let isolated = json!({"parent": "main", "subagent_inherit": "isolated"});
    assert_eq!(start("e", isolated, "--subagent-inherit inherit"), 0);
    let invalid = json!({"parent": "main", "subagent_inherit": "all"});
    let refused = call_refused(&cli, "before_agent", &invalid, "--session s --agent f");
    assert_eq!(refused["code"], "invalid_request");
}

#[test]
fn seed_000_section_8_1_model_is_reported_after_loading() {
    let cli = cli_with_fork();
    let prompt = || {
        cli.run("prompt --skills skills --session s --json")
            .expect_code(0)
            .json()
    };
    assert_eq!(prompt().get("model"), None);
    call_ok(&cli, "skill_load", &json!({"skill": "plain"}), "--session s");
    assert_eq!(prompt()["model"], "large");
    assert_eq!(session_show(&cli, "s")["loaded"][0]["model"], "large");
    let text = cli.run("session show s").expect_code(0).stdout;
    assert!(text.contains("for the model large"), "{text}");
}

#[test]
fn seed_000_section_1_4_user_invocable_false_refuses_the_user() {
    let cli = Cli::new();
    write_skill(
        &cli,
        "inner",
        "description: d\nuser-invocable: false",
        "Body of inner.\n",
    );
    for (dialect, tool, arguments) in [
        ("skillbox", "skill_load", json!({"skill": "inner"})),
        ("trpc", "skill_load", json!({"skill": "inner"})),
        ("deepagents", "load_skill", json!({"skill_name": "inner"})),
        ("saa", "read_skill", json!({"skill_name": "inner"})),
    ] {
        let flags = format!("--dialect {dialect}");
        let refused = call_refused(&cli, tool, &arguments, &format!("{flags} --caller user"));
        assert_eq!(refused["code"], "model_only", "{dialect}: {refused}");
        call_ok(&cli, tool, &arguments, &flags);
    }
    assert!(
        prompt(&cli, "--loaded inner").contains("Body of inner."),
        "a host may show it"
    );
    let errors = cli.run("help errors").expect_code(0).stdout;
    assert!(errors.contains("model_only"), "{errors}");
}
