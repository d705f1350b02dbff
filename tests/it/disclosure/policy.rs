//! The policy for `allowed-tools`, through the command line.

use serde_json::{Value, json};

use super::{call, call_ok, call_refused, cli_with_skills};

fn bash(command: &str) -> Value {
    json!({"command": command})
}

fn run(command: &str) -> Value {
    json!({"skill": "git", "command": command})
}

/// `git` declares `Bash(git:*)`, `pdf` declares `Bash(pdftotext:*) Read`, `plain` declares nothing. The last three
/// columns are the verdicts of `recommend`, `restrict` and `strict`.
#[test]
fn restrict_and_strict_differ_where_a_skill_declares_nothing() {
    let file = || json!({"file_path": "x"});
    let table = [
        // Without a loaded skill every call passes.
        ("", "Bash", bash("rm x"), [true, true, true]),
        // Declared tools pass, others do not.
        ("git", "Bash", bash("git status"), [true, true, true]),
        ("git", "Bash", bash("rm x"), [true, false, false]),
        ("git", "Edit", json!({}), [true, false, false]),
        // Every segment of a command must be covered.
        ("git", "Bash", bash("git log | head"), [true, false, false]),
        ("git", "Bash", bash("git log $(rm x)"), [true, false, false]),
        // The declarations of all loaded skills count together.
        ("git pdf", "Bash", bash("git log && pdftotext a"), [true, true, true]),
        ("git pdf", "Read", file(), [true, true, true]),
        ("git", "Read", file(), [true, false, false]),
        // A skill without declarations lifts `restrict` and adds nothing to `strict`.
        ("git plain", "Bash", bash("rm x"), [true, true, false]),
        ("git plain", "Bash", bash("git log"), [true, true, true]),
        ("plain", "Bash", bash("git log"), [true, true, false]),
        ("plain", "Read", file(), [true, true, false]),
        // Always allowed.
        ("git", "read_file", file(), [true, true, true]),
        ("plain", "skill_load", json!({}), [true, true, true]),
        // skill_run counts as Bash.
        ("git", "skill_run", run("git log"), [true, true, true]),
        ("git", "skill_run", run("rm x"), [true, false, false]),
    ];
    let cli = cli_with_skills();
    for (loaded, tool, arguments, verdicts) in table {
        let session = format!("s{}", loaded.replace(' ', "-"));
        for skill in loaded.split_whitespace() {
            call_ok(
                &cli,
                "skill_load",
                &json!({"skill": skill}),
                &format!("--session {session}"),
            );
        }
        for (policy, passes) in ["recommend", "restrict", "strict"].into_iter().zip(verdicts) {
            let tool_call = json!({"tool": tool, "arguments": arguments});
            let output = call(
                &cli,
                "wrap_tool_call",
                &tool_call,
                &format!("--session {session} --policy {policy}"),
            );
            let expected = if passes { 0 } else { 1 };
            assert_eq!(
                output.code,
                Some(expected),
                "{policy}, {loaded:?} loaded: {tool_call}: {}",
                output.transcript()
            );
        }
    }
}

#[test]
fn a_host_can_check_a_call_from_the_command_line() {
    let cli = cli_with_skills();
    call_ok(&cli, "skill_load", &json!({"skill": "git"}), "--session s1");
    let tool_call = |command: &str| json!({"tool": "Bash", "arguments": bash(command)});
    let answer = call_ok(
        &cli,
        "wrap_tool_call",
        &tool_call("git status"),
        "--session s1 --policy restrict",
    );
    assert_eq!(
        answer,
        json!({"allowed": true, "tool": "Bash", "policy": "restrict", "state_delta": []})
    );
    let error = call_refused(
        &cli,
        "wrap_tool_call",
        &tool_call("curl x"),
        "--session s1 --policy restrict",
    );
    assert_eq!(error["code"], "tool_not_allowed");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .ends_with("allowed tools: Bash(git:*)"),
        "{error}"
    );
    let flags = "--session s1 --policy restrict --dialect deepagents";
    let error = call_refused(&cli, "wrap_tool_call", &json!({"tool": "execute"}), flags);
    assert_eq!(
        error["message"],
        "Tool 'execute' is not in the allowed-tools list for the currently loaded skills. Allowed tools: Bash(git:*). \
         If you believe this tool is necessary, explain your reasoning."
    );
}

#[test]
fn the_policy_applies_to_runs() {
    let cli = cli_with_skills();
    call_ok(&cli, "skill_load", &json!({"skill": "git"}), "--session s");
    let flags = "--session s --policy strict";
    assert_eq!(
        call_refused(&cli, "skill_run", &run("echo hello"), flags)["code"],
        "tool_not_allowed"
    );
    assert_eq!(
        call_ok(&cli, "skill_run", &run("echo hello"), "--session s")["stdout"],
        "hello\n"
    );
    call_ok(&cli, "skill_run", &run("git --version"), flags);
    call_ok(
        &cli,
        "skill_run",
        &run("echo hello"),
        &format!("{flags} --always-allowed skill_run"),
    );
}

#[test]
fn an_explicit_always_allowed_set_replaces_the_default() {
    let cli = cli_with_skills();
    call_ok(&cli, "skill_load", &json!({"skill": "git"}), "--session s");
    let code = |flags: &[&str]| {
        let arguments = json!({"skill": "pdf"}).to_string();
        let line = [
            "--skills",
            "skills",
            "call",
            "skill_list_docs",
            &arguments,
            "--session",
            "s",
            "--policy",
            "strict",
        ];
        cli.run_args(&[&line[..], flags].concat()).code
    };
    assert_eq!(code(&[]), Some(0));
    assert_eq!(code(&["--always-allowed", ""]), Some(1), "an empty set is a set");
    assert_eq!(code(&["--always-allowed", "ls,skill_list_docs"]), Some(0));
    assert_eq!(code(&["--always-allowed", "ls"]), Some(1));
    cli.write_file("skillbox.toml", "always_allowed = []\n");
    assert_eq!(code(&[]), Some(1));
}
