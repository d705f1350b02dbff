//! The log, as programs read it.

use serde_json::{Value, json};

use crate::program::World;

fn world() -> World {
    let world = World::new();
    world.write(
        "skills/git/SKILL.md",
        "---\nname: git\ndescription: Reads history.\nallowed-tools: Bash(git:*)\n---\nBody.\n",
    );
    world
}

/// The lines that a call writes to stderr, each an object.
fn log(world: &World, level: &str, tool: &str, arguments: &Value, words: &[&str]) -> Vec<Value> {
    let arguments = arguments.to_string();
    let line = [
        "--skills",
        "skills",
        "--log",
        level,
        "call",
        tool,
        &arguments,
        "--session",
        "s",
    ];
    let ran = world.run_words(&[&line[..], words].concat());
    ran.stderr
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect()
}

fn find<'l>(log: &'l [Value], message: &str) -> &'l Value {
    let found = log
        .iter()
        .find(|line| line["message"].as_str().is_some_and(|text| text.contains(message)));
    found.unwrap_or_else(|| panic!("no {message:?} in {log:#?}"))
}

#[test]
fn the_steps_of_a_call_are_logged_with_their_facts() {
    let world = world();
    let lines = log(&world, "info", "skill_load", &json!({"skill": "git"}), &[]);
    assert_eq!(find(&lines, "discovered")["level"], "INFO");
    assert_eq!(find(&lines, "skill loaded")["skill"], "git");
    let response = find(&lines, "tool.response");
    assert_eq!(
        (&response["tool"], &response["session"]),
        (&json!("skill_load"), &json!("s"))
    );
    assert!(
        response["state_delta"]
            .as_str()
            .unwrap()
            .starts_with(r#"[{"op":"load","skill":"git""#),
        "{response}"
    );
}

#[test]
fn what_is_refused_is_a_warning() {
    let world = world();
    log(&world, "off", "skill_load", &json!({"skill": "git"}), &[]);
    let run = json!({"skill": "git", "command": "rm x"});
    let lines = log(&world, "warn", "skill_run", &run, &["--policy", "restrict"]);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(
        (&lines[0]["level"], &lines[0]["tool"]),
        (&json!("WARN"), &json!("skill_run"))
    );
    world.write("skills/pdf/SKILL.md", "---\nname: pdf\ndescription: d\n---\n");
    let lines = log(
        &world,
        "warn",
        "skill_load",
        &json!({"skill": "pdf"}),
        &["--max-loaded", "1"],
    );
    assert_eq!(find(&lines, "limit reached")["limit"], 1);
}

#[test]
fn a_run_is_a_row_of_spans() {
    let world = world();
    let lines = log(
        &world,
        "info",
        "skill_run",
        &json!({"skill": "git", "command": "echo x > out/x", "output_files": ["out/*"]}),
        &[],
    );
    let ended: Vec<&str> = lines
        .iter()
        .filter(|line| line["message"] == "close")
        .filter_map(|line| line["span"]["name"].as_str())
        .collect();
    for span in [
        "workspace.create",
        "workspace.stage.skill",
        "workspace.stage.inputs",
        "workspace.run",
        "workspace.collect",
        "workspace.inline",
        "workspace.cleanup",
    ] {
        assert!(ended.contains(&span), "{span} is missing in {ended:?}");
    }
}

#[test]
fn nobody_is_told_who_did_not_ask() {
    let world = world();
    let ran = world.run("--skills skills call skill_list").expect_code(0);
    assert_eq!(ran.stderr, "");
}
