//! Hook events: each fires at its moment, or by the verb `fire_event` of the host.

use std::fs;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use skillbox_repository::{Repository, ScanOptions, Scope, Source};
use skillbox_runtime::{
    AgentName, AgentOptions, AgentSession, AgentSpec, BlockingExit, Dialect, FiredBy, HistoryCompleteness, HookEvent,
    Inheritance, Runtime, RuntimeSettings, ToolCall,
};
use skillbox_sandbox::Profiles;

use super::mcp_text_client::McpTextClient;
use crate::cli::Cli;
use crate::disclosure::{call_ok, call_refused, prompt, write_skill};
use crate::harness::HttpServer;
use crate::workspace::root;

/// A skill that adds a note to the next prompt for every event.
fn skill_with_every_event() -> String {
    let hooks: String = HookEvent::ALL
        .iter()
        .map(|event| format!("  {0}:\n    - {{type: prompt, prompt: note of {0}}}\n", event.as_str()))
        .collect();
    format!("---\nname: all\ndescription: d\nhooks:\n{hooks}---\nBody.\n")
}

fn session_with(skill_md: &str) -> (tempfile::TempDir, AgentSession) {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("skills/all")).unwrap();
    fs::write(dir.path().join("skills/all/SKILL.md"), skill_md).unwrap();
    let source = Source::Directory {
        path: dir.path().join("skills"),
        scope: Scope::Project,
    };
    let repository = Repository::open(vec![source], ScanOptions::default());
    let settings = RuntimeSettings::with_state_dir(dir.path().join("state"));
    let runtime = Runtime::new(repository.into(), Profiles::shipped(), Vec::new(), settings);
    let session = AgentSession::open(Arc::new(runtime), AgentOptions::new(Dialect::Skillbox)).unwrap();
    (dir, session)
}

fn next_prompt(session: &AgentSession) -> String {
    let section = session.modify_request(&AgentName::default(), HistoryCompleteness::Complete);
    section.unwrap().unwrap().text
}

#[test]
fn seed_000_section_8_2_every_event_fires_by_the_verb_of_the_host() {
    let (_dir, session) = session_with(&skill_with_every_event());
    let agent = AgentName::default();
    let fire = |event: HookEvent| session.fire_event(&agent, event, &Map::new()).unwrap();
    fire(HookEvent::Stop);
    assert!(
        !next_prompt(&session).contains("note of"),
        "control: the skill is not loaded"
    );
    session
        .call(&ToolCall::new("skill_load", json!({"skill": "all"})))
        .unwrap();
    next_prompt(&session);
    assert_eq!(HookEvent::ALL.len(), 29);
    for event in HookEvent::ALL {
        let fired = fire(*event);
        assert_eq!(fired.result, json!({"event": event.as_str(), "blocked": false}));
        let prompt = next_prompt(&session);
        let note = format!("- all: note of {}\n", event.as_str());
        assert!(prompt.contains(&note), "{note}: {prompt}");
        assert_eq!(prompt.matches("note of").count(), 1, "{prompt}");
        assert!(!next_prompt(&session).contains("note of"));
    }
}

#[test]
fn seed_000_section_8_2_events_that_skillbox_sees_fire_at_their_moment() {
    let (_dir, session) = session_with(&skill_with_every_event());
    let agent = AgentName::default();
    let notes = || -> Vec<String> {
        let prompt = next_prompt(&session);
        let lines = prompt.lines().filter_map(|line| line.strip_prefix("- all: note of "));
        lines.map(str::to_owned).collect()
    };
    session
        .call(&ToolCall::new("skill_load", json!({"skill": "all"})))
        .unwrap();
    let mut seen = notes();
    assert_eq!(seen, ["SessionStart", "PostToolUse"]);
    session.wrap_tool_call(&agent, "Edit", &json!({})).unwrap();
    seen.extend(notes());
    session
        .after_failed_tool_call(&agent, "Edit", &json!({}), "disk full")
        .unwrap();
    seen.extend(notes());
    let helper = AgentName::parse("helper").unwrap();
    let spec = AgentSpec::sub_agent(agent.clone(), helper, Inheritance::Isolated);
    session.before_agent(&spec).unwrap();
    seen.extend(notes());
    // A run that skillbox cannot carry out, here without any executor, is a failed call.
    let run = json!({"skill": "all", "command": "true"});
    session.call(&ToolCall::new("skill_run", run)).unwrap_err();
    seen.extend(notes());
    let by_skillbox = HookEvent::ALL
        .iter()
        .filter(|event| event.fired_by() == FiredBy::Skillbox);
    for event in by_skillbox.filter(|event| **event != HookEvent::SubagentStop) {
        assert!(
            seen.iter().any(|name| name == event.as_str()),
            "{event:?} is missing in {seen:?}"
        );
    }
    assert_eq!(seen.last().unwrap(), "PostToolUseFailure", "{seen:?}");
}

#[test]
fn seed_000_section_8_2_matchers_are_compared_with_the_field_of_the_event() {
    let (_dir, session) = session_with(
        "---\nname: all\ndescription: d\nhooks:\n  PreCompact:\n    - {matcher: auto, type: prompt, prompt: note}\n---\n",
    );
    session
        .call(&ToolCall::new("skill_load", json!({"skill": "all"})))
        .unwrap();
    let fire = |trigger: &str| {
        let input = Map::from_iter([("trigger".to_owned(), json!(trigger))]);
        session
            .fire_event(&AgentName::default(), HookEvent::PreCompact, &input)
            .unwrap();
        next_prompt(&session).contains("- all: note")
    };
    assert!(fire("auto") && !fire("manual"));
}

/// A command that blocks when its input asks for it, in the sandbox.
fn cli_with_stop_hook() -> Cli {
    let cli = Cli::new();
    write_skill(
        &cli,
        "guard",
        "description: d\nhooks:\n  Stop:\n    - hooks: [{type: command, command: bash check.sh}]",
        "Body.\n",
    );
    cli.write_file(
        "skills/guard/check.sh",
        "input=$(cat)\ncase $input in *'\"last\":true'*) echo \"$input\" >&2; exit 2 ;; esac\n",
    );
    cli
}

#[test]
fn seed_000_section_8_2_exit_code_2_blocks_an_event_on_the_command_line() {
    let cli = cli_with_stop_hook();
    call_ok(&cli, "skill_load", &json!({"skill": "guard"}), "--session s");
    let passed = call_ok(&cli, "fire_event", &json!({"event": "Stop"}), "--session s");
    assert_eq!(
        (&passed["blocked"], &passed["hooks"][0]["exit_code"]),
        (&json!(false), &json!(0))
    );
    let input = json!({"event": "Stop", "input": {"last": true, "hook_event_name": "Other"}});
    let blocked = call_ok(&cli, "fire_event", &input, "--session s");
    assert_eq!(blocked["blocked"], true, "{blocked}");
    let read: Value = serde_json::from_str(blocked["reason"].as_str().unwrap()).unwrap();
    assert_eq!(
        (&read["hook_event_name"], &read["session_id"], &read["last"]),
        (&json!("Stop"), &json!("s"), &json!(true)),
        "the input cannot replace the fields of skillbox"
    );

    let unknown = call_refused(&cli, "fire_event", &json!({"event": "Whenever"}), "--session s");
    assert_eq!(
        (&unknown["code"], &unknown["field"]),
        (&json!("invalid_request"), &json!("event"))
    );
    let large = json!({"event": "Stop", "input": {"x": "y".repeat(300_000)}});
    cli.write_file("large.json", large.to_string());
    let refused = cli
        .run("--skills skills call fire_event @large.json --session s")
        .expect_code(1)
        .json();
    assert_eq!(
        (&refused["error"]["code"], &refused["error"]["field"]),
        (&json!("limit_exceeded"), &json!("input"))
    );
}

#[test]
fn seed_000_section_8_2_events_are_fired_over_http_and_mcp() {
    let cli = cli_with_stop_hook();
    let skills = cli.work_dir().join("skills");
    let (server, _) = HttpServer::start(&["--skills", skills.to_str().unwrap()], &[]);
    let post = |path: &str, body: Value| server.request_json("", "POST", path, Some(&body));
    post("/v1/sessions", json!({"id": "s"})).expect_status(201);
    post("/v1/sessions/s/tools/skill_load", json!({"skill": "guard"})).expect_status(200);
    let input = json!({"event": "Stop", "input": {"last": true}});
    let blocked = post("/v1/sessions/s/tools/fire_event", input.clone()).expect_status(200);
    assert_eq!(blocked["blocked"], true, "{blocked}");

    let mut client = McpTextClient::connect(&skills, &cli.work_dir().join("state"), &[]);
    client.call_ok("skill_load", json!({"skill": "guard"}));
    assert_eq!(client.call_ok("fire_event", json!({"event": "Stop"})), "Stop was fired");
    let blocked = client.call_ok("fire_event", input);
    assert!(blocked.starts_with("a hook blocks Stop: {"), "{blocked}");
    assert!(
        !client.tool_names().contains(&"fire_event".to_owned()),
        "the verb is for the host, not for the model"
    );
}

#[test]
fn seed_000_section_8_2_hooks_that_never_fire_are_diagnostics() {
    let cli = Cli::new();
    let hooks = "hooks:\n  Whenever:\n    - {type: prompt, prompt: x}\n  Stop:\n    - hooks: [{type: http, url: x}]";
    write_skill(&cli, "odd", &format!("description: d\n{hooks}"), "Body.\n");
    let expected = [
        "the hook Whenever: unknown hook event",
        "the hook Stop: unknown handler type",
    ];
    let check = |text: &str| {
        for message in expected {
            assert!(
                text.contains("invalid_hook") && text.contains(message),
                "{message}: {text}"
            );
        }
    };
    check(&cli.run("list -v --skills skills").expect_code(0).stderr);
    check(&cli.run("info odd --skills skills").expect_code(0).stderr);
    check(&cli.run("validate --lenient skills").expect_code(0).stdout);
    let listed = cli.run("list --skills skills --json").expect_code(0).json();
    assert_eq!(listed["diagnostics"].as_array().unwrap().len(), 2, "{listed}");
    let codes = cli.run("help findings").expect_code(0).stdout;
    assert!(
        codes.contains("invalid_hook") && codes.contains("resources_unreadable"),
        "{codes}"
    );
    assert!(!prompt(&cli, "").contains("hook"), "the skill itself is usable");
}

/// The table of the documentation has one row for each event, with what the code does.
#[test]
fn seed_000_section_8_2_the_table_of_events_is_documented() {
    let documented = fs::read_to_string(root().join("docs/agents.md")).unwrap();
    for event in HookEvent::ALL {
        let fired_by = match event.fired_by() {
            FiredBy::Skillbox => "skillbox",
            FiredBy::Host => "host",
        };
        let field = event
            .matcher_field()
            .map_or("–".to_owned(), |field| format!("`{field}`"));
        let exit = match event.blocking_exit() {
            BlockingExit::Blocks => "blocks",
            BlockingExit::Reported => "is reported",
        };
        let row = format!(
            "| `{}` | {} | {fired_by} | {field} | {exit} |",
            event.as_str(),
            event.when()
        );
        assert!(documented.contains(&row), "docs/agents.md lacks the row\n{row}");
    }
}
