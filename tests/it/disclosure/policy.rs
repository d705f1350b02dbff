//! The policy for `allowed-tools`, asked through the program.

use serde_json::{Value, json};

use super::{call, library, ok, refused};

fn bash(command: &str) -> Value {
    json!({"command": command})
}

fn run(command: &str) -> Value {
    json!({"skill": "git", "command": command})
}

/// `git` declares `Bash(git:*)`, `pdf` declares `Bash(pdftotext:*) Read`, `plain` declares nothing. The last three
/// columns are what `recommend`, `restrict` and `strict` say.
#[test]
fn restrict_and_strict_differ_where_a_skill_declares_nothing() {
    let file = || json!({"file_path": "x"});
    let table = [
        // With nothing loaded everything passes.
        ("", "Bash", bash("rm x"), [true, true, true]),
        // What is declared passes, what is not does not.
        ("git", "Bash", bash("git status"), [true, true, true]),
        ("git", "Bash", bash("rm x"), [true, false, false]),
        ("git", "Edit", json!({}), [true, false, false]),
        // Every segment of a command must be covered.
        ("git", "Bash", bash("git log | head"), [true, false, false]),
        ("git", "Bash", bash("git log $(rm x)"), [true, false, false]),
        // The union of all that are loaded.
        ("git pdf", "Bash", bash("git log && pdftotext a"), [true, true, true]),
        ("git pdf", "Read", file(), [true, true, true]),
        ("git", "Read", file(), [true, false, false]),
        // A skill that declares nothing lifts the one and adds nothing to the other.
        ("git plain", "Bash", bash("rm x"), [true, true, false]),
        ("git plain", "Bash", bash("git log"), [true, true, true]),
        ("plain", "Bash", bash("git log"), [true, true, false]),
        ("plain", "Read", file(), [true, true, false]),
        // Always allowed.
        ("git", "read_file", file(), [true, true, true]),
        ("plain", "skill_load", json!({}), [true, true, true]),
        // Our shell is Bash.
        ("git", "skill_run", run("git log"), [true, true, true]),
        ("git", "skill_run", run("rm x"), [true, false, false]),
    ];
    let world = library();
    for (loaded, tool, arguments, verdicts) in table {
        let session = format!("s{}", loaded.replace(' ', "-"));
        for skill in loaded.split_whitespace() {
            ok(
                &world,
                "skill_load",
                &json!({"skill": skill}),
                &format!("--session {session}"),
            );
        }
        for (policy, passes) in ["recommend", "restrict", "strict"].into_iter().zip(verdicts) {
            let ask = json!({"tool": tool, "arguments": arguments});
            let ran = call(
                &world,
                "wrap_tool_call",
                &ask,
                &format!("--session {session} --policy {policy}"),
            );
            let expected = if passes { 0 } else { 1 };
            assert_eq!(
                ran.code,
                Some(expected),
                "{policy}, {loaded:?} loaded: {ask}: {}",
                ran.whole()
            );
        }
    }
}

#[test]
fn a_host_in_any_language_can_ask() {
    let world = library();
    ok(&world, "skill_load", &json!({"skill": "git"}), "--session s1");
    let ask = |command: &str| json!({"tool": "Bash", "arguments": bash(command)});
    let answer = ok(
        &world,
        "wrap_tool_call",
        &ask("git status"),
        "--session s1 --policy restrict",
    );
    assert_eq!(
        answer,
        json!({"allowed": true, "tool": "Bash", "policy": "restrict", "state_delta": []})
    );
    let error = refused(
        &world,
        "wrap_tool_call",
        &ask("curl x"),
        "--session s1 --policy restrict",
    );
    assert_eq!(error["code"], "tool_not_allowed");
    assert!(
        error["message"].as_str().unwrap().ends_with("allowed are: Bash(git:*)"),
        "{error}"
    );
    let words = "--session s1 --policy restrict --dialect deepagents";
    let error = refused(&world, "wrap_tool_call", &json!({"tool": "execute"}), words);
    assert_eq!(
        error["message"],
        "Tool 'execute' is not in the allowed-tools list for the currently loaded skills. Allowed tools: Bash(git:*). \
         If you believe this tool is necessary, explain your reasoning."
    );
}

#[test]
fn the_policy_holds_for_runs_too() {
    let world = library();
    ok(&world, "skill_load", &json!({"skill": "git"}), "--session s");
    let words = "--session s --policy strict";
    assert_eq!(
        refused(&world, "skill_run", &run("echo hello"), words)["code"],
        "tool_not_allowed"
    );
    assert_eq!(
        ok(&world, "skill_run", &run("echo hello"), "--session s")["stdout"],
        "hello\n"
    );
    ok(&world, "skill_run", &run("git --version"), words);
    ok(
        &world,
        "skill_run",
        &run("echo hello"),
        &format!("{words} --always-allowed skill_run"),
    );
}

#[test]
fn an_explicit_set_replaces_the_customary_one() {
    let world = library();
    ok(&world, "skill_load", &json!({"skill": "git"}), "--session s");
    let code = |words: &[&str]| {
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
        world.run_words(&[&line[..], words].concat()).code
    };
    assert_eq!(code(&[]), Some(0));
    assert_eq!(code(&["--always-allowed", ""]), Some(1), "an empty set is a set");
    assert_eq!(code(&["--always-allowed", "ls,skill_list_docs"]), Some(0));
    assert_eq!(code(&["--always-allowed", "ls"]), Some(1));
    world.write("skillbox.toml", "always_allowed = []\n");
    assert_eq!(code(&[]), Some(1));
}
