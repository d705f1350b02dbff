//! Hooks of skills: commands in the sandbox, prompts in the next prompt, agents for the host.

use serde_json::{Value, json};

use super::{library, ok, prompt, refused, skill};
use crate::program::World;

fn guarded(hooks: &str) -> World {
    let world = library();
    skill(
        &world,
        "guard",
        &format!("description: Guards.\nhooks:\n{hooks}"),
        "Body.\n",
    );
    world.write("skills/guard/check.sh", CHECK);
    world.write(
        "skills/guard/start.sh",
        "echo \"python is here\"; echo started > $WORK_DIR/started\n",
    );
    world
}

/// Stops commands that remove something; what it was told stands in the workspace.
const CHECK: &str = r#"
input=$(cat)
printf '%s' "$input" > "$WORK_DIR/told.json"
case $input in
*'rm '*) echo 'nothing is removed here' >&2; exit 2 ;;
*broken*) exit 1 ;;
*sleep*) sleep 60 ;;
esac
"#;

const BEFORE_BASH: &str = "  PreToolUse:
    - matcher: Bash
      hooks: [{type: command, command: bash check.sh, timeout: 2}]";

#[test]
fn a_command_before_a_call_can_stop_it() {
    let world = guarded(BEFORE_BASH);
    let ask = |command: &str| json!({"tool": "Bash", "arguments": {"command": command}});
    assert_eq!(
        ok(&world, "wrap_tool_call", &ask("rm x"), "--session s")["allowed"],
        true,
        "not loaded yet"
    );
    ok(&world, "skill_load", &json!({"skill": "guard"}), "--session s");

    let passed = ok(&world, "wrap_tool_call", &ask("ls"), "--session s");
    assert_eq!(passed["hooks"][0]["status"], "ran");
    assert_eq!(passed["hooks"][0]["exit_code"], 0);
    let told = ok(
        &world,
        "skill_run",
        &json!({"skill": "pdf", "command": "cat $WORK_DIR/told.json"}),
        "--session s",
    );
    let told: Value = serde_json::from_str(told["stdout"].as_str().unwrap()).unwrap();
    assert_eq!(told["hook_event_name"], "PreToolUse");
    assert_eq!(
        (&told["tool_name"], &told["session_id"]),
        (&json!("skill_run"), &json!("s")),
        "our shell is Bash too"
    );

    let error = refused(&world, "wrap_tool_call", &ask("rm x"), "--session s");
    assert_eq!(error["code"], "tool_not_allowed");
    assert_eq!(
        error["message"],
        "a hook of the skill guard stops the call of \"Bash\": nothing is removed here"
    );
    let run = json!({"skill": "pdf", "command": "rm -f x; echo done"});
    assert_eq!(
        refused(&world, "skill_run", &run, "--session s")["code"],
        "tool_not_allowed"
    );
    assert_eq!(
        ok(&world, "skill_run", &run, "")["stdout"],
        "done\n",
        "without the skill it runs"
    );

    let odd = ok(&world, "wrap_tool_call", &ask("broken"), "--session s");
    assert_eq!(
        odd["hooks"][0]["exit_code"], 1,
        "another failure is told and stops nothing"
    );
    let error = refused(&world, "wrap_tool_call", &ask("sleep"), "--session s");
    assert!(
        error["message"].as_str().unwrap().ends_with("it was ended by timeout"),
        "{error}"
    );
}

/// An executor that cannot run anything.
const NOWHERE: &str = "--executor docker --docker-host unix:///no/such/socket";

#[test]
fn s23_a_guard_that_cannot_run_lets_nothing_pass() {
    let world = guarded(BEFORE_BASH);
    ok(&world, "skill_load", &json!({"skill": "guard"}), "--session s");
    let ask = json!({"tool": "Bash", "arguments": {"command": "ls"}});
    let error = refused(&world, "wrap_tool_call", &ask, &format!("--session s {NOWHERE}"));
    assert_eq!(error["code"], "tool_not_allowed");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("it could not run: the Docker daemon does not answer"),
        "{error}"
    );
    let offered = ok(
        &world,
        "wrap_tool_call",
        &ask,
        &format!("--session s {NOWHERE} --hooks offer"),
    );
    assert_eq!(offered["hooks"][0]["status"], "for_host");
    assert_eq!(offered["hooks"][0]["handler"]["command"], "bash check.sh");
}

#[test]
fn s23_no_hook_keeps_its_own_skill() {
    let world = guarded("  PreToolUse:\n    - hooks: [{type: command, command: \"exit 2\"}]");
    ok(&world, "skill_load", &json!({"skill": "guard"}), "--session s");
    assert_eq!(
        refused(&world, "skill_list", &json!({}), "--session s")["code"],
        "tool_not_allowed"
    );
    ok(&world, "skill_unload", &json!({"skill": "guard"}), "--session s");
    ok(&world, "skill_list", &json!({}), "--session s");
    let saa = "--session saa --dialect saa";
    ok(&world, "read_skill", &json!({"skill_name": "guard"}), saa);
    refused(&world, "search_skills", &json!({"query": "x"}), saa);
    ok(&world, "disable_skill", &json!({"skill_name": "guard"}), saa);
    ok(&world, "search_skills", &json!({"query": "x"}), saa);
}

/// The control is the test's own look: the file is there, and readable, on the host.
#[test]
fn s23_a_command_never_runs_on_the_host() {
    let world = World::new();
    world.write("secret", "of the host\n");
    let secret = world.work().join("secret");
    let mark = world.work().join("mark");
    let hooks = format!(
        "  SessionStart:\n    - hooks: [{{type: command, command: \"cat {}; echo x > {}; id -u\"}}]",
        secret.display(),
        mark.display()
    );
    skill(&world, "nosy", &format!("description: d\nhooks:\n{hooks}"), "Body.\n");
    let loaded = ok(&world, "skill_load", &json!({"skill": "nosy"}), "");
    let hook = &loaded["hooks"][0];
    assert_eq!(
        (&hook["event"], &hook["status"]),
        (&json!("SessionStart"), &json!("ran")),
        "{loaded}"
    );
    let said = hook["stdout"].as_str().unwrap();
    assert!(
        !said.contains("of the host") && said.trim() != "0" && !said.trim().is_empty(),
        "{hook}"
    );
    assert!(!mark.exists());
    assert_eq!(std::fs::read_to_string(secret).unwrap(), "of the host\n");
}

#[test]
fn a_command_at_the_start_speaks_into_the_next_prompt_once() {
    let world = guarded("  SessionStart:\n    - hooks: [{type: command, command: bash start.sh}]");
    let loaded = ok(&world, "skill_load", &json!({"skill": "guard"}), "--session s");
    assert_eq!(loaded["hooks"][0]["exit_code"], 0, "{loaded}");
    let seen = ok(
        &world,
        "skill_run",
        &json!({"skill": "pdf", "command": "cat $WORK_DIR/started"}),
        "--session s",
    );
    assert_eq!(seen["stdout"], "started\n", "it ran in the session's workspace");
    assert!(prompt(&world, "--session s").contains("- guard: python is here"));
    assert!(!prompt(&world, "--session s").contains("python is here"));
    let again = ok(&world, "skill_load", &json!({"skill": "guard"}), "--session s");
    assert_eq!(again.get("hooks"), None, "its session has started already");
}

#[test]
fn prompts_are_injected_and_agents_are_handed_over() {
    let world = guarded(
        "  PreToolUse:
    - matcher: Edit
      hooks: [{type: prompt, prompt: Mind the style., once: true}]
  PostToolUse:
    - matcher: Edit|Write
      hooks: [{type: agent, prompt: Review it., model: small}]
  Stop:
    - hooks: [{type: prompt, prompt: Never fired by us.}]",
    );
    ok(&world, "skill_load", &json!({"skill": "guard"}), "--session s");
    let before = ok(&world, "wrap_tool_call", &json!({"tool": "Edit"}), "--session s");
    let operations: Vec<&Value> = before["state_delta"]
        .as_array()
        .unwrap()
        .iter()
        .map(|operation| &operation["op"])
        .collect();
    assert_eq!(operations, ["hook_fired", "add_note"]);
    let after = ok(
        &world,
        "after_tool_call",
        &json!({"tool": "Edit", "result": "done"}),
        "--session s",
    );
    assert_eq!(
        after["hooks"],
        json!([{
            "skill": "guard", "event": "PostToolUse", "index": 1, "once": false, "status": "for_host",
            "handler": {"type": "agent", "prompt": "Review it.", "model": "small"},
        }])
    );
    let shown = prompt(&world, "--session s");
    assert!(
        shown.contains("- guard: Mind the style.") && !shown.contains("Never fired"),
        "{shown}"
    );
    ok(&world, "wrap_tool_call", &json!({"tool": "Edit"}), "--session s");
    assert!(
        !prompt(&world, "--session s").contains("Mind the style."),
        "it said once"
    );
    let other = ok(&world, "after_tool_call", &json!({"tool": "Read"}), "--session s");
    assert_eq!(other.get("hooks"), None);
}

/// In dialects whose results are a text, the host's part stands beside it.
#[test]
fn hooks_of_a_load_are_told_in_every_dialect() {
    let world = guarded("  SessionStart:\n    - hooks: [{type: agent, prompt: Prepare.}]");
    for (dialect, tool, key) in [
        ("skillbox", "skill_load", "skill"),
        ("trpc", "skill_load", "skill"),
        ("deepagents", "load_skill", "skill_name"),
        ("saa", "read_skill", "skill_name"),
    ] {
        let loaded = ok(&world, tool, &json!({key: "guard"}), &format!("--dialect {dialect}"));
        assert_eq!(
            loaded["hooks"][0]["handler"]["prompt"], "Prepare.",
            "{dialect}: {loaded}"
        );
    }
}
