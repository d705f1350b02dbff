//! The policy for `allowed-tools`, asked through the program.

use serde_json::{Value, json};

use super::{call, library, ok, refused};

/// What each policy says about one call, in the order recommend, restrict, strict.
struct Row {
    loaded: &'static [&'static str],
    tool: &'static str,
    arguments: Value,
    passes: [bool; 3],
}

fn bash(command: &str) -> Value {
    json!({"command": command})
}

/// `git` declares `Bash(git:*)`, `pdf` declares `Bash(pdftotext:*) Read`, `plain` declares nothing.
#[test]
fn restrict_and_strict_differ_where_a_skill_declares_nothing() {
    let rows = [
        // With nothing loaded everything passes.
        Row {
            loaded: &[],
            tool: "Bash",
            arguments: bash("rm x"),
            passes: [true, true, true],
        },
        // What is declared passes, what is not does not.
        Row {
            loaded: &["git"],
            tool: "Bash",
            arguments: bash("git status"),
            passes: [true, true, true],
        },
        Row {
            loaded: &["git"],
            tool: "Bash",
            arguments: bash("rm x"),
            passes: [true, false, false],
        },
        Row {
            loaded: &["git"],
            tool: "Edit",
            arguments: json!({}),
            passes: [true, false, false],
        },
        // Every segment of a command must be covered.
        Row {
            loaded: &["git"],
            tool: "Bash",
            arguments: bash("git log | head"),
            passes: [true, false, false],
        },
        Row {
            loaded: &["git"],
            tool: "Bash",
            arguments: bash("git log $(rm x)"),
            passes: [true, false, false],
        },
        // The union of all that are loaded.
        Row {
            loaded: &["git", "pdf"],
            tool: "Bash",
            arguments: bash("git log && pdftotext a"),
            passes: [true, true, true],
        },
        Row {
            loaded: &["git", "pdf"],
            tool: "Read",
            arguments: json!({"file_path": "x"}),
            passes: [true, true, true],
        },
        Row {
            loaded: &["git"],
            tool: "Read",
            arguments: json!({"file_path": "x"}),
            passes: [true, false, false],
        },
        // A skill that declares nothing lifts the one and adds nothing to the other.
        Row {
            loaded: &["git", "plain"],
            tool: "Bash",
            arguments: bash("rm x"),
            passes: [true, true, false],
        },
        Row {
            loaded: &["git", "plain"],
            tool: "Bash",
            arguments: bash("git log"),
            passes: [true, true, true],
        },
        Row {
            loaded: &["plain"],
            tool: "Bash",
            arguments: bash("git log"),
            passes: [true, true, false],
        },
        Row {
            loaded: &["plain"],
            tool: "Read",
            arguments: json!({"file_path": "x"}),
            passes: [true, true, false],
        },
        // Always allowed.
        Row {
            loaded: &["git"],
            tool: "read_file",
            arguments: json!({}),
            passes: [true, true, true],
        },
        Row {
            loaded: &["plain"],
            tool: "skill_load",
            arguments: json!({}),
            passes: [true, true, true],
        },
        // Our shell is Bash.
        Row {
            loaded: &["git"],
            tool: "skill_run",
            arguments: json!({"skill": "git", "command": "git log"}),
            passes: [true, true, true],
        },
        Row {
            loaded: &["git"],
            tool: "skill_run",
            arguments: json!({"skill": "git", "command": "rm x"}),
            passes: [true, false, false],
        },
    ];
    let world = library();
    for Row {
        loaded,
        tool,
        arguments,
        passes,
    } in rows
    {
        let session = if loaded.is_empty() {
            "none".to_owned()
        } else {
            loaded.join("-")
        };
        for skill in loaded {
            ok(
                &world,
                "skill_load",
                &json!({"skill": skill}),
                &format!("--session {session}"),
            );
        }
        for (policy, passes) in ["recommend", "restrict", "strict"].into_iter().zip(passes) {
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
    let run = |command: &str| json!({"skill": "git", "command": command});
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
