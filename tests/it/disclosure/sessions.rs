//! What a session keeps from one call to the next.

use std::process::Stdio;

use serde_json::{Value, json};

use super::{call, library, ok, prompt, refused, skill};
use crate::program::World;

#[test]
fn what_is_loaded_stands_in_the_next_prompt_and_nothing_else_does() {
    let world = library();
    let loaded = ok(
        &world,
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

    let shown = prompt(&world, "--session s1");
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
        prompt(&world, "--session s1"),
        shown,
        "the same state gives the same bytes"
    );
    assert!(
        !prompt(&world, "--session s2").contains("[Loaded]"),
        "another session knows nothing of it"
    );
    assert!(!prompt(&world, "").contains("[Loaded]"));

    let cleared = ok(
        &world,
        "skill_select_docs",
        &json!({"skill": "pdf", "mode": "clear"}),
        "--session s1",
    );
    assert_eq!(cleared["selected_docs"], json!([]));
    let shown = prompt(&world, "--session s1");
    assert!(
        shown.contains("The body of pdf.") && !shown.contains("All about forms."),
        "{shown}"
    );

    ok(&world, "skill_unload", &json!({"skill": "pdf"}), "--session s1");
    let shown = prompt(&world, "--session s1");
    assert!(
        !shown.contains("[Loaded]") && !shown.contains("The body of pdf."),
        "{shown}"
    );
}

#[test]
fn a_session_shows_what_is_loaded() {
    let world = library();
    let docs = json!({"skill": "pdf", "docs": ["references/forms.md"]});
    ok(&world, "skill_load", &docs, "--session s");
    ok(
        &world,
        "skill_load",
        &json!({"skill": "git"}),
        "--session s --agent helper",
    );
    ok(&world, "skill_disable", &json!({"skill": "plain"}), "--session s");
    let shown = world.run("session show s --json").expect_code(0).json();
    assert_eq!(
        shown["loaded"],
        json!([
            {"agent": "helper", "skill": "git", "mode": "session", "docs": []},
            {"agent": "main", "skill": "pdf", "mode": "session", "docs": ["references/forms.md"]},
        ])
    );
    assert_eq!(shown["disabled"], json!(["plain"]));
    let words = world.run("session show s").expect_code(0).stdout;
    assert!(
        words.contains("loaded, with references/forms.md") && words.contains("loaded by helper"),
        "{words}"
    );
}

#[test]
fn documents_are_added_replaced_and_taken_whole() {
    let world = library();
    let select = |arguments: Value| ok(&world, "skill_select_docs", &arguments, "--session s")["selected_docs"].clone();
    ok(
        &world,
        "skill_load",
        &json!({"skill": "pdf", "docs": ["references/forms.md"]}),
        "--session s",
    );
    let added = select(json!({"skill": "pdf", "docs": ["references/fonts.md"], "mode": "add"}));
    assert_eq!(
        added,
        json!(["references/forms.md", "references/fonts.md"]),
        "in the order of choosing"
    );
    assert_eq!(
        select(json!({"skill": "pdf", "docs": ["references/fonts.md"]})),
        json!(["references/fonts.md"])
    );
    let all = json!(["references/fonts.md", "references/forms.md"]);
    assert_eq!(select(json!({"skill": "pdf", "include_all_docs": true})), all);
    assert_eq!(
        ok(&world, "skill_list_docs", &json!({"skill": "pdf"}), "--session s"),
        all
    );
    ok(
        &world,
        "skill_load",
        &json!({"skill": "pdf", "docs": ["references/forms.md"]}),
        "--session s",
    );
    let shown = prompt(&world, "--session s");
    assert!(
        shown.contains("All about forms.") && !shown.contains("All about fonts."),
        "loading again replaces: {shown}"
    );
}

/// Each process reads the state, looks at its skill, and changes the state: none may undo another.
#[test]
fn calls_at_once_on_one_session_all_land() {
    let world = World::new();
    let names: Vec<String> = (0..8).map(|number| format!("skill-{number}")).collect();
    for name in &names {
        skill(&world, name, "description: One of several.", "Body.\n");
    }
    let start = |name: &String| {
        let arguments = json!({"skill": name}).to_string();
        let words = ["--skills", "skills", "call", "skill_load", &arguments, "--session", "s"];
        world.command(&words).stdout(Stdio::null()).spawn().unwrap()
    };
    let children: Vec<_> = names.iter().map(start).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let listed = ok(&world, "skill_list", &json!({}), "--session s");
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
    let world = library();
    ok(&world, "skill_load", &json!({"skill": "pdf"}), "--session s");
    let state = world.home().join(".local/state/skillbox/sessions/s/state.json");
    let before = std::fs::read(&state).unwrap();
    for (tool, arguments, words, code) in [
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
        let error = refused(&world, tool, &arguments, &format!("--session s {words}"));
        assert_eq!(error["code"], code, "{tool} {arguments}: {error}");
        assert_eq!(std::fs::read(&state).unwrap(), before, "{tool} {arguments}");
    }
}

#[test]
fn loads_last_as_long_as_the_mode_says() {
    let world = library();
    let loaded = |words: &str| prompt(&world, words).contains("- pdf [Loaded]");
    let load = |words: &str| ok(&world, "skill_load", &json!({"skill": "pdf"}), words)["mode"].clone();
    let next_turn = |session: &str| ok(&world, "before_agent", &json!({}), session)["changed"].clone();

    assert_eq!(load("--session session"), "session");
    assert!(loaded("--session session"));
    assert_eq!(next_turn("--session session"), false, "nothing is new");
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
fn at_the_limit_a_skill_is_refused_or_makes_room() {
    let world = library();
    ok(
        &world,
        "skill_load",
        &json!({"skill": "pdf"}),
        "--session s --max-loaded 2",
    );
    ok(
        &world,
        "skill_load",
        &json!({"skill": "git"}),
        "--session s --max-loaded 2",
    );
    let error = refused(
        &world,
        "skill_load",
        &json!({"skill": "plain"}),
        "--session s --max-loaded 2",
    );
    assert!(error["message"].as_str().unwrap().contains("pdf, git"), "{error}");
    ok(
        &world,
        "skill_load",
        &json!({"skill": "pdf"}),
        "--session s --max-loaded 2",
    );
    let evicting = ok(
        &world,
        "skill_load",
        &json!({"skill": "plain"}),
        "--session s --max-loaded 2 --at-limit evict",
    );
    assert_eq!(evicting["evicted"], "git", "the one that was not used for longest");
}

#[test]
fn changes_on_disk_reach_a_session() {
    let world = library();
    ok(&world, "skill_load", &json!({"skill": "pdf"}), "--session s");
    skill(&world, "new", "description: Just made.", "Fresh.\n");
    skill(
        &world,
        "pdf",
        "description: Reads PDFs better.",
        "# PDF\n\nAnother body.\n",
    );
    std::fs::remove_dir_all(world.work().join("skills/git")).unwrap();
    let shown = prompt(&world, "--session s");
    assert!(
        shown.contains("- pdf [Loaded]: Reads PDFs better.") && shown.contains("Another body."),
        "{shown}"
    );
    assert!(
        shown.contains("- new: Just made.") && !shown.contains("- git"),
        "{shown}"
    );
    ok(&world, "skill_load", &json!({"skill": "new"}), "--session s");
    assert_eq!(
        refused(&world, "skill_load", &json!({"skill": "git"}), "--session s")["code"],
        "unknown_skill"
    );
}

#[test]
fn a_session_does_without_a_disabled_skill() {
    let world = library();
    ok(&world, "skill_load", &json!({"skill": "pdf"}), "--session s");
    assert_eq!(
        ok(&world, "skill_disable", &json!({"skill": "pdf"}), "--session s")["changed"],
        true
    );
    assert!(!prompt(&world, "--session s").contains("pdf"));
    assert_eq!(
        refused(&world, "skill_load", &json!({"skill": "pdf"}), "--session s")["code"],
        "skill_disabled"
    );
    let run = json!({"skill": "git", "command": "true", "with_skills": ["pdf"]});
    let error = refused(&world, "skill_run", &run, "--session s");
    assert_eq!(
        (&error["code"], &error["field"]),
        (&json!("unknown_skill"), &json!("with_skills[0]"))
    );
    let run = json!({"skill": "git", "command": "true", "inputs": [{"from": "skill://pdf/SKILL.md"}]});
    assert_eq!(
        refused(&world, "skill_run", &run, "--session s")["field"],
        "inputs[0].from"
    );
    call(&world, "skill_run", &run, "--session other").expect_code(0);
    ok(&world, "skill_enable", &json!({"skill": "pdf"}), "--session s");
    call(&world, "skill_run", &run, "--session s").expect_code(0);
}

#[test]
fn agents_of_one_session_load_for_themselves() {
    let world = library();
    ok(&world, "skill_load", &json!({"skill": "pdf"}), "--session s");
    assert!(!prompt(&world, "--session s --agent helper").contains("[Loaded]"));
    ok(
        &world,
        "before_agent",
        &json!({"parent": "main", "inheritance": "inherit"}),
        "--session s --agent heir",
    );
    assert!(prompt(&world, "--session s --agent heir").contains("- pdf [Loaded]"));
    let only = json!({"parent": "main", "skills": ["git"]});
    ok(&world, "before_agent", &only, "--session s --agent narrow");
    let shown = prompt(&world, "--session s --agent narrow");
    assert!(shown.contains("- git: ") && !shown.contains("pdf"), "{shown}");
}

#[test]
fn the_workspace_of_a_session_outlives_a_call() {
    let world = library();
    let run = |command: &str, words: &str| {
        ok(&world, "skill_run", &json!({"skill": "pdf", "command": command}), words)["stdout"].clone()
    };
    run("echo kept > $WORK_DIR/note", "--session s");
    assert_eq!(run("cat $WORK_DIR/note", "--session s"), "kept\n");
    assert_eq!(run("cat $WORK_DIR/note 2>/dev/null || echo none", ""), "none\n");
}
