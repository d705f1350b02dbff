//! Hooks of skills: commands run in the sandbox, prompts are injected, agents are handed to the host.

use serde_json::{Value, json};

use super::{call_ok, call_refused, cli_with_skills, prompt, write_skill};
use crate::cli::Cli;

fn cli_with_hooks(hooks: &str) -> Cli {
    let cli = cli_with_skills();
    write_skill(
        &cli,
        "guard",
        &format!("description: Guards.\nhooks:\n{hooks}"),
        "Body.\n",
    );
    cli.write_file("skills/guard/check.sh", CHECK_SCRIPT);
    cli.write_file(
        "skills/guard/start.sh",
        "echo \"python is here\"; echo started > $WORK_DIR/started\n",
    );
    cli
}

/// Stops commands that remove files, and writes its input to the workspace.
const CHECK_SCRIPT: &str = r#"
input=$(cat)
printf '%s' "$input" > "$WORK_DIR/input.json"
case $input in
*'rm '*) echo 'nothing is removed here' >&2; exit 2 ;;
*broken*) exit 1 ;;
*sleep*) sleep 300 ;;
esac
"#;

const BEFORE_BASH: &str = "  PreToolUse:
    - matcher: Bash
      hooks: [{type: command, command: bash check.sh, timeout: 5}]";

#[test]
fn a_pre_tool_use_command_can_stop_the_call() {
    let cli = cli_with_hooks(BEFORE_BASH);
    let bash_call = |command: &str| json!({"tool": "Bash", "arguments": {"command": command}});
    assert_eq!(
        call_ok(&cli, "wrap_tool_call", &bash_call("rm x"), "--session s")["allowed"],
        true,
        "the skill is not loaded"
    );
    call_ok(&cli, "skill_load", &json!({"skill": "guard"}), "--session s");

    let passed = call_ok(&cli, "wrap_tool_call", &bash_call("ls"), "--session s");
    assert_eq!(passed["hooks"][0]["status"], "ran");
    assert_eq!(passed["hooks"][0]["exit_code"], 0);
    let output = call_ok(
        &cli,
        "skill_run",
        &json!({"skill": "pdf", "command": "cat $WORK_DIR/input.json"}),
        "--session s",
    );
    let input: Value = serde_json::from_str(output["stdout"].as_str().unwrap()).unwrap();
    assert_eq!(input["hook_event_name"], "PreToolUse");
    assert_eq!(
        (&input["tool_name"], &input["session_id"]),
        (&json!("skill_run"), &json!("s")),
        "skill_run matches Bash"
    );

    let error = call_refused(&cli, "wrap_tool_call", &bash_call("rm x"), "--session s");
    assert_eq!(error["code"], "tool_not_allowed");
    assert_eq!(
        error["message"],
        "a hook of the skill guard blocks the call of \"Bash\": nothing is removed here"
    );
    let run = json!({"skill": "pdf", "command": "rm -f x; echo done"});
    assert_eq!(
        call_refused(&cli, "skill_run", &run, "--session s")["code"],
        "tool_not_allowed"
    );
    assert_eq!(
        call_ok(&cli, "skill_run", &run, "")["stdout"],
        "done\n",
        "without the skill the command runs"
    );

    let failed = call_ok(&cli, "wrap_tool_call", &bash_call("broken"), "--session s");
    assert_eq!(
        failed["hooks"][0]["exit_code"], 1,
        "another exit code is reported and stops nothing"
    );
    let error = call_refused(&cli, "wrap_tool_call", &bash_call("sleep"), "--session s");
    assert!(
        error["message"].as_str().unwrap().ends_with("it was ended by timeout"),
        "{error}"
    );
}

/// An executor without a daemon.
const NO_DAEMON: &str = "--executor docker --docker-host unix:///no/such/socket";

#[test]
fn s23_a_hook_that_cannot_run_blocks_the_call() {
    let cli = cli_with_hooks(BEFORE_BASH);
    call_ok(&cli, "skill_load", &json!({"skill": "guard"}), "--session s");
    let bash_call = json!({"tool": "Bash", "arguments": {"command": "ls"}});
    let error = call_refused(&cli, "wrap_tool_call", &bash_call, &format!("--session s {NO_DAEMON}"));
    assert_eq!(error["code"], "tool_not_allowed");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("it could not run: the Docker daemon does not answer"),
        "{error}"
    );
    let offered = call_ok(
        &cli,
        "wrap_tool_call",
        &bash_call,
        &format!("--session s {NO_DAEMON} --hooks offer"),
    );
    assert_eq!(offered["hooks"][0]["status"], "for_host");
    assert_eq!(offered["hooks"][0]["handler"]["command"], "bash check.sh");
}

#[test]
fn s23_a_hook_cannot_prevent_the_unloading_of_its_skill() {
    let cli = cli_with_hooks("  PreToolUse:\n    - hooks: [{type: command, command: \"exit 2\"}]");
    call_ok(&cli, "skill_load", &json!({"skill": "guard"}), "--session s");
    assert_eq!(
        call_refused(&cli, "skill_list", &json!({}), "--session s")["code"],
        "tool_not_allowed"
    );
    call_ok(&cli, "skill_unload", &json!({"skill": "guard"}), "--session s");
    call_ok(&cli, "skill_list", &json!({}), "--session s");
    let saa = "--session saa --dialect saa";
    call_ok(&cli, "read_skill", &json!({"skill_name": "guard"}), saa);
    call_refused(&cli, "search_skills", &json!({"query": "x"}), saa);
    call_ok(&cli, "disable_skill", &json!({"skill_name": "guard"}), saa);
    call_ok(&cli, "search_skills", &json!({"query": "x"}), saa);
}

/// The control: the test itself reads the file on the host.
#[test]
fn s23_a_hook_command_never_runs_on_the_host() {
    let cli = Cli::new();
    cli.write_file("secret", "of the host\n");
    let secret = cli.work_dir().join("secret");
    let mark = cli.work_dir().join("mark");
    let hooks = format!(
        "  SessionStart:\n    - hooks: [{{type: command, command: \"cat {}; echo x > {}; id -u\"}}]",
        secret.display(),
        mark.display()
    );
    write_skill(&cli, "nosy", &format!("description: d\nhooks:\n{hooks}"), "Body.\n");
    let loaded = call_ok(&cli, "skill_load", &json!({"skill": "nosy"}), "");
    let hook = &loaded["hooks"][0];
    assert_eq!(
        (&hook["event"], &hook["status"]),
        (&json!("SessionStart"), &json!("ran")),
        "{loaded}"
    );
    let stdout = hook["stdout"].as_str().unwrap();
    assert!(
        !stdout.contains("of the host") && stdout.trim() != "0" && !stdout.trim().is_empty(),
        "{hook}"
    );
    assert!(!mark.exists());
    assert_eq!(std::fs::read_to_string(secret).unwrap(), "of the host\n");
}

#[test]
fn session_start_output_appears_in_the_next_prompt_once() {
    let cli = cli_with_hooks("  SessionStart:\n    - hooks: [{type: command, command: bash start.sh}]");
    let loaded = call_ok(&cli, "skill_load", &json!({"skill": "guard"}), "--session s");
    assert_eq!(loaded["hooks"][0]["exit_code"], 0, "{loaded}");
    let seen = call_ok(
        &cli,
        "skill_run",
        &json!({"skill": "pdf", "command": "cat $WORK_DIR/started"}),
        "--session s",
    );
    assert_eq!(
        seen["stdout"], "started\n",
        "the hook ran in the workspace of the session"
    );
    assert!(prompt(&cli, "--session s").contains("- guard: python is here"));
    assert!(!prompt(&cli, "--session s").contains("python is here"));
    let again = call_ok(&cli, "skill_load", &json!({"skill": "guard"}), "--session s");
    assert_eq!(again.get("hooks"), None, "the hook runs once");
}

#[test]
fn prompt_hooks_are_injected_and_agent_hooks_are_handed_to_the_host() {
    let cli = cli_with_hooks(
        "  PreToolUse:
    - matcher: Edit
      hooks: [{type: prompt, prompt: Mind the style., once: true}]
  PostToolUse:
    - matcher: Edit|Write
      hooks: [{type: agent, prompt: Review it., model: small}]
  Stop:
    - hooks: [{type: prompt, prompt: Never fired by us.}]",
    );
    call_ok(&cli, "skill_load", &json!({"skill": "guard"}), "--session s");
    let before = call_ok(&cli, "wrap_tool_call", &json!({"tool": "Edit"}), "--session s");
    let operations: Vec<&Value> = before["state_delta"]
        .as_array()
        .unwrap()
        .iter()
        .map(|operation| &operation["op"])
        .collect();
    assert_eq!(operations, ["hook_fired", "add_note"]);
    let after = call_ok(
        &cli,
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
    let shown = prompt(&cli, "--session s");
    assert!(
        shown.contains("- guard: Mind the style.") && !shown.contains("Never fired"),
        "{shown}"
    );
    call_ok(&cli, "wrap_tool_call", &json!({"tool": "Edit"}), "--session s");
    assert!(
        !prompt(&cli, "--session s").contains("Mind the style."),
        "the prompt is injected once"
    );
    let other = call_ok(&cli, "after_tool_call", &json!({"tool": "Read"}), "--session s");
    assert_eq!(other.get("hooks"), None);
}

/// In dialects with textual results, the hooks are a field beside the text.
#[test]
fn hooks_of_a_load_are_returned_in_every_dialect() {
    let cli = cli_with_hooks("  SessionStart:\n    - hooks: [{type: agent, prompt: Prepare.}]");
    for (dialect, tool, key) in [
        ("skillbox", "skill_load", "skill"),
        ("trpc", "skill_load", "skill"),
        ("deepagents", "load_skill", "skill_name"),
        ("saa", "read_skill", "skill_name"),
    ] {
        let loaded = call_ok(&cli, tool, &json!({key: "guard"}), &format!("--dialect {dialect}"));
        assert_eq!(
            loaded["hooks"][0]["handler"]["prompt"], "Prepare.",
            "{dialect}: {loaded}"
        );
    }
}
