//! The state that a session keeps between calls.

use std::process::Stdio;

use serde_json::{Value, json};

use super::{call, call_ok, call_refused, cli_with_skills, prompt, write_skill};
use crate::cli::Cli;

#[test]
fn the_next_prompt_contains_the_loaded_skills_only() {
    let cli = cli_with_skills();
    let loaded = call_ok(
        &cli,
        "skill_load",
        &json!({"skill": "pdf", "docs": ["references/forms.md"]}),
        "--session s1",
    );
    assert_eq!(loaded["instructions"], "# PDF\n\nThe body of pdf.\n");
    assert_eq!(
        loaded["docs"],
        json!([{"path": "references/forms.md", "content": "All about forms.\n"}])
    );
    assert_eq!(loaded["resource_summary"], "2 references, 1 script");
    assert_eq!(
        loaded["state_delta"][0],
        json!({"op": "load", "skill": "pdf", "mode": "session"})
    );

    let shown = prompt(&cli, "--session s1");
    for part in [
        "- pdf [Loaded]: Reads PDFs.",
        "- git: Reads history.",
        "The body of pdf.",
        "All about forms.",
    ] {
        assert!(shown.contains(part), "{part} is missing: {shown}");
    }
    for other in ["All about fonts.", "The body of git.", "The body of plain.", "print("] {
        assert!(!shown.contains(other), "{other} is shown: {shown}");
    }
    assert_eq!(
        prompt(&cli, "--session s1"),
        shown,
        "the same state gives the same bytes"
    );
    assert!(
        !prompt(&cli, "--session s2").contains("[Loaded]"),
        "another session is not affected"
    );
    assert!(!prompt(&cli, "").contains("[Loaded]"));

    let cleared = call_ok(
        &cli,
        "skill_select_docs",
        &json!({"skill": "pdf", "mode": "clear"}),
        "--session s1",
    );
    assert_eq!(cleared["selected_docs"], json!([]));
    let shown = prompt(&cli, "--session s1");
    assert!(
        shown.contains("The body of pdf.") && !shown.contains("All about forms."),
        "{shown}"
    );

    call_ok(&cli, "skill_unload", &json!({"skill": "pdf"}), "--session s1");
    let shown = prompt(&cli, "--session s1");
    assert!(
        !shown.contains("[Loaded]") && !shown.contains("The body of pdf."),
        "{shown}"
    );
}

#[test]
fn session_show_lists_the_loaded_skills() {
    let cli = cli_with_skills();
    let docs = json!({"skill": "pdf", "docs": ["references/forms.md"]});
    call_ok(&cli, "skill_load", &docs, "--session s");
    call_ok(
        &cli,
        "skill_load",
        &json!({"skill": "git"}),
        "--session s --agent helper",
    );
    call_ok(&cli, "skill_disable", &json!({"skill": "plain"}), "--session s");
    let shown = cli.run("session show s --json").expect_code(0).json();
    assert_eq!(
        shown["loaded"],
        json!([
            {"agent": "helper", "skill": "git", "mode": "session", "docs": []},
            {"agent": "main", "skill": "pdf", "mode": "session", "docs": ["references/forms.md"]},
        ])
    );
    assert_eq!(shown["disabled"], json!(["plain"]));
    let args = cli.run("session show s").expect_code(0).stdout;
    assert!(
        args.contains("loaded, with references/forms.md") && args.contains("loaded by helper"),
        "{args}"
    );
}

#[test]
fn documents_can_be_added_replaced_and_all_selected() {
    let cli = cli_with_skills();
    let select =
        |arguments: Value| call_ok(&cli, "skill_select_docs", &arguments, "--session s")["selected_docs"].clone();
    call_ok(
        &cli,
        "skill_load",
        &json!({"skill": "pdf", "docs": ["references/forms.md"]}),
        "--session s",
    );
    let added = select(json!({"skill": "pdf", "docs": ["references/fonts.md"], "mode": "add"}));
    assert_eq!(
        added,
        json!(["references/forms.md", "references/fonts.md"]),
        "in the order of selection"
    );
    assert_eq!(
        select(json!({"skill": "pdf", "docs": ["references/fonts.md"]})),
        json!(["references/fonts.md"])
    );
    let all = json!(["references/fonts.md", "references/forms.md"]);
    assert_eq!(select(json!({"skill": "pdf", "include_all_docs": true})), all);
    assert_eq!(
        call_ok(&cli, "skill_list_docs", &json!({"skill": "pdf"}), "--session s"),
        all
    );
    call_ok(
        &cli,
        "skill_load",
        &json!({"skill": "pdf", "docs": ["references/forms.md"]}),
        "--session s",
    );
    let shown = prompt(&cli, "--session s");
    assert!(
        shown.contains("All about forms.") && !shown.contains("All about fonts."),
        "loading again replaces: {shown}"
    );
}

/// Each process reads the state, loads its skill and writes the state. No process may undo the change of another.
#[test]
fn concurrent_calls_on_one_session_are_all_applied() {
    let cli = Cli::new();
    let names: Vec<String> = (0..8).map(|number| format!("skill-{number}")).collect();
    for name in &names {
        write_skill(&cli, name, "description: One of several.", "Body.\n");
    }
    let start = |name: &String| {
        let arguments = json!({"skill": name}).to_string();
        let args = ["--skills", "skills", "call", "skill_load", &arguments, "--session", "s"];
        cli.command(&args).stdout(Stdio::null()).spawn().unwrap()
    };
    let children: Vec<_> = names.iter().map(start).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let listed = call_ok(&cli, "skill_list", &json!({}), "--session s");
    let loaded: Vec<&str> = listed["skills"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|skill| skill["loaded"] == true)
        .map(|skill| skill["name"].as_str().unwrap())
        .collect();
    assert_eq!(loaded, names);
}

#[test]
fn s22_a_refused_call_changes_nothing() {
    let cli = cli_with_skills();
    call_ok(&cli, "skill_load", &json!({"skill": "pdf"}), "--session s");
    let state = cli.home_dir().join(".local/state/skillbox/sessions/s/state.json");
    let before = std::fs::read(&state).unwrap();
    for (tool, arguments, args, code) in [
        ("skill_load", json!({"skill": "pfd"}), "", "unknown_skill"),
        (
            "skill_load",
            json!({"skill": "git", "docs": ["x.md"]}),
            "",
            "unknown_doc",
        ),
        (
            "skill_load",
            json!({"skill": "git", "docs": ["../../x.md"]}),
            "",
            "path_escape",
        ),
        ("skill_load", json!({"skill": "git"}), "--max-loaded 1", "load_limit"),
        (
            "skill_select_docs",
            json!({"skill": "pdf", "mode": "drop"}),
            "",
            "invalid_request",
        ),
        ("skill_read", json!({"skill": "pdf", "path": "none"}), "", "unknown_doc"),
        (
            "skill_run",
            json!({"skill": "pdf", "command": "rm x"}),
            "--policy restrict",
            "tool_not_allowed",
        ),
        (
            "skill_run",
            json!({"skill": "pdf", "comand": "true"}),
            "",
            "invalid_request",
        ),
        (
            "skill_run",
            json!({"skill": "git", "command": "true"}),
            "--require-loaded",
            "not_loaded",
        ),
        ("git", json!({}), "", "unknown_tool"),
    ] {
        let error = call_refused(&cli, tool, &arguments, &format!("--session s {args}"));
        assert_eq!(error["code"], code, "{tool} {arguments}: {error}");
        assert_eq!(std::fs::read(&state).unwrap(), before, "{tool} {arguments}");
    }
}

#[test]
fn loads_last_as_long_as_their_mode() {
    let cli = cli_with_skills();
    let loaded = |args: &str| prompt(&cli, args).contains("- pdf [Loaded]");
    let load = |args: &str| call_ok(&cli, "skill_load", &json!({"skill": "pdf"}), args)["mode"].clone();
    let next_turn = |session: &str| call_ok(&cli, "before_agent", &json!({}), session)["changed"].clone();

    assert_eq!(load("--session session"), "session");
    assert!(loaded("--session session"));
    assert_eq!(next_turn("--session session"), false, "nothing changed");
    assert!(loaded("--session session"));

    assert_eq!(load("--session turn --load-mode turn"), "turn");
    assert!(loaded("--session turn") && loaded("--session turn"));
    assert_eq!(next_turn("--session turn"), true);
    assert!(!loaded("--session turn"));

    assert_eq!(load("--session once --load-mode once"), "once");
    assert!(loaded("--session once"));
    assert!(!loaded("--session once"));
}

#[test]
fn at_the_limit_a_load_is_refused_or_evicts() {
    let cli = cli_with_skills();
    call_ok(
        &cli,
        "skill_load",
        &json!({"skill": "pdf"}),
        "--session s --max-loaded 2",
    );
    call_ok(
        &cli,
        "skill_load",
        &json!({"skill": "git"}),
        "--session s --max-loaded 2",
    );
    let error = call_refused(
        &cli,
        "skill_load",
        &json!({"skill": "plain"}),
        "--session s --max-loaded 2",
    );
    assert!(error["message"].as_str().unwrap().contains("pdf, git"), "{error}");
    call_ok(
        &cli,
        "skill_load",
        &json!({"skill": "pdf"}),
        "--session s --max-loaded 2",
    );
    let evicting = call_ok(
        &cli,
        "skill_load",
        &json!({"skill": "plain"}),
        "--session s --max-loaded 2 --at-limit evict",
    );
    assert_eq!(evicting["evicted"], "git", "the least recently used skill");
}

#[test]
fn changes_on_disk_appear_at_the_start_of_a_turn() {
    let cli = cli_with_skills();
    let load = json!({"skill": "pdf", "docs": ["references/forms.md"]});
    call_ok(&cli, "skill_load", &load, "--session s");
    let before = prompt(&cli, "--session s");
    assert!(
        before.contains("The body of pdf.") && before.contains("All about forms."),
        "{before}"
    );
    cli.write_file("skills/pdf/references/forms.md", "Nothing about forms.\n");
    write_skill(&cli, "new", "description: Just made.", "Fresh.\n");
    write_skill(
        &cli,
        "pdf",
        "description: Reads PDFs better.",
        "# PDF\n\nAnother body.\n",
    );
    std::fs::remove_dir_all(cli.work_dir().join("skills/git")).unwrap();
    assert_eq!(prompt(&cli, "--session s"), before, "a turn's prompt keeps its bytes");
    let error = call_refused(&cli, "skill_load", &json!({"skill": "new"}), "--session s");
    assert_eq!(error["code"], "unknown_skill");
    assert_eq!(error["hint"], "it can be used in the next turn");
    assert!(
        prompt(&cli, "").contains("- new"),
        "without a session, a command sees the current skills"
    );
    assert_eq!(
        call_ok(&cli, "before_agent", &json!({}), "--session s")["changed"],
        true
    );
    let shown = prompt(&cli, "--session s");
    assert!(
        shown.contains("- pdf [Loaded]: Reads PDFs better.") && shown.contains("Another body."),
        "{shown}"
    );
    assert!(shown.contains("Nothing about forms."), "{shown}");
    assert!(
        shown.contains("- new: Just made.") && !shown.contains("- git"),
        "{shown}"
    );
    call_ok(&cli, "skill_load", &json!({"skill": "new"}), "--session s");
    assert_eq!(
        call_refused(&cli, "skill_load", &json!({"skill": "git"}), "--session s")["code"],
        "unknown_skill"
    );
}

#[test]
fn a_disabled_skill_is_unavailable_in_its_session() {
    let cli = cli_with_skills();
    call_ok(&cli, "skill_load", &json!({"skill": "pdf"}), "--session s");
    assert_eq!(
        call_ok(&cli, "skill_disable", &json!({"skill": "pdf"}), "--session s")["changed"],
        true
    );
    assert!(!prompt(&cli, "--session s").contains("pdf"));
    assert_eq!(
        call_refused(&cli, "skill_load", &json!({"skill": "pdf"}), "--session s")["code"],
        "skill_disabled"
    );
    let run = json!({"skill": "git", "command": "true", "with_skills": ["pdf"]});
    let error = call_refused(&cli, "skill_run", &run, "--session s");
    assert_eq!(
        (&error["code"], &error["field"]),
        (&json!("unknown_skill"), &json!("with_skills[0]"))
    );
    let run = json!({"skill": "git", "command": "true", "inputs": [{"from": "skill://pdf/SKILL.md"}]});
    assert_eq!(
        call_refused(&cli, "skill_run", &run, "--session s")["field"],
        "inputs[0].from"
    );
    call(&cli, "skill_run", &run, "--session other").expect_code(0);
    call_ok(&cli, "skill_enable", &json!({"skill": "pdf"}), "--session s");
    call(&cli, "skill_run", &run, "--session s").expect_code(0);
}

#[test]
fn agents_of_one_session_have_separate_loads() {
    let cli = cli_with_skills();
    call_ok(&cli, "skill_load", &json!({"skill": "pdf"}), "--session s");
    assert!(!prompt(&cli, "--session s --agent helper").contains("[Loaded]"));
    call_ok(
        &cli,
        "before_agent",
        &json!({"parent": "main", "inheritance": "inherit"}),
        "--session s --agent heir",
    );
    assert!(prompt(&cli, "--session s --agent heir").contains("- pdf [Loaded]"));
    let only = json!({"parent": "main", "skills": ["git"]});
    call_ok(&cli, "before_agent", &only, "--session s --agent narrow");
    let shown = prompt(&cli, "--session s --agent narrow");
    assert!(shown.contains("- git: ") && !shown.contains("pdf"), "{shown}");
}

#[test]
fn a_session_workspace_is_kept_between_calls() {
    let cli = cli_with_skills();
    let run = |command: &str, args: &str| {
        call_ok(&cli, "skill_run", &json!({"skill": "pdf", "command": command}), args)["stdout"].clone()
    };
    run("echo kept > $WORK_DIR/note", "--session s");
    assert_eq!(run("cat $WORK_DIR/note", "--session s"), "kept\n");
    assert_eq!(run("cat $WORK_DIR/note 2>/dev/null || echo none", ""), "none\n");
}
