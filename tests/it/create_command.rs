//! `skillbox create`: good names make a working skill, bad names make nothing, nothing is overwritten.

use std::fs;

use crate::program::{World, is_executable};

/// Traversal, absolute, separator, metacharacter and blank names.
const BAD_NAMES: &[&str] = &[
    "..",
    ".",
    "../x",
    "../../x",
    "x/..",
    "x/../y",
    "..\\x",
    "....//x", // traversal
    "/x",
    "/etc/passwd",
    "//x",
    "C:\\x", // absolute
    "a/b",
    "a\\b",
    "a/",
    "a//b", // separators
    "a;b",
    "a|b",
    "a&b",
    "a$b",
    "a`b",
    "a*b",
    "a?b",
    "a<b",
    "a>b",
    "a(b",
    "a)b",
    "a{b",
    "a[b",
    "a!b",
    "a#b",
    "a'b",
    "a\"b",
    "a~b",
    "",
    " ",
    "\t",
    "a b", // blanks
    "A",
    "-a",
    "a-",
    "a--b",
    "a_b",
    "a.b",
    "a\nb",
    "\u{1b}[2J",
    "🎉",
];

#[test]
fn a_new_skill_validates_loads_and_runs() {
    let world = World::new();
    insta::assert_snapshot!(world.run("create log-reader --dir skills").whole(), @"
    exit code 0
    --- stdout
    created log-reader in skills/log-reader

      SKILL.md               what an agent reads: start here
      scripts/count.sh       a script that works: try it
      references/output.md   details that are read only when needed
      assets/report.md       files for the result: templates, fonts, data

    next
      1. say in SKILL.md what the skill does and when to use it
      2. skillbox validate skills/log-reader
    --- stderr
    ");
    let dir = world.work().join("skills/log-reader");

    world.run("validate skills/log-reader").expect_code(0);
    let list = world.run("list --skills skills --json").expect_code(0).json();
    assert_eq!(list["skills"][0]["name"], "log-reader");
    assert_eq!(list["diagnostics"].as_array().unwrap().len(), 0, "{list}");
    assert_eq!(list["skills"][0]["resources"]["script"], 1);

    let script = dir.join("scripts/count.sh");
    assert!(is_executable(&script));
    let counted = world.run_other(&script, &[], "one two\nthree\n").expect_code(0);
    assert_eq!(counted.stdout, "{\"lines\": 2, \"words\": 3, \"bytes\": 14}\n");
    let counted = world
        .run_other(&script, &[dir.join("SKILL.md").to_str().unwrap()], "")
        .expect_code(0);
    assert!(counted.json()["lines"].as_u64() > Some(5));
    world.run_other(&script, &["/nowhere"], "").expect_code(1);
}

#[test]
fn the_description_says_when_and_the_body_does_not() {
    let world = World::new();
    world.run("create my-skill").expect_code(0);
    let text = fs::read_to_string(world.work().join("my-skill/SKILL.md")).unwrap();
    let (_, body) = text[3..].split_once("\n---\n").unwrap();
    assert!(text.contains("Use when"), "{text}");
    assert!(!body.to_lowercase().contains("when to use"), "{body}");
}

#[test]
fn bad_names_are_refused_with_a_reason_and_leave_nothing() {
    let world = World::new();
    for name in BAD_NAMES {
        let ran = world.run_words(&["create", "--json", "--", name]).expect_code(1);
        let error = &ran.json()["error"];
        assert_eq!(error["code"], "invalid_request", "{name:?}");
        assert!(
            error["message"].as_str().unwrap().len() > 10 && error["hint"].is_string(),
            "{name:?}: {error}"
        );
    }
    assert_eq!(fs::read_dir(world.work()).unwrap().count(), 0);
    // The control: the same way with a good name.
    world.run_words(&["create", "--json", "--", "good-name"]).expect_code(0);
}

#[test]
fn nothing_is_ever_overwritten() {
    let world = World::new();
    world.run("create my-skill").expect_code(0);
    world.write("my-skill/SKILL.md", "mine");
    let again = world.run("create my-skill --json").expect_code(1);
    assert_eq!(again.json()["error"]["code"], "already_exists");
    assert_eq!(
        fs::read_to_string(world.work().join("my-skill/SKILL.md")).unwrap(),
        "mine"
    );

    // A file, and a link that leads nowhere, are in the way too.
    world.write("a-file", "mine");
    std::os::unix::fs::symlink("nowhere", world.work().join("a-link")).unwrap();
    for name in ["a-file", "a-link"] {
        world.run(&format!("create {name}")).expect_code(1);
    }
    let mut left: Vec<_> = fs::read_dir(world.work())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["a-file", "a-link", "my-skill"], "nothing else is left behind");
}

#[test]
fn a_directory_that_cannot_be_written_is_told() {
    let world = World::new();
    world.write("a-file", "");
    let ran = world.run("create my-skill --dir a-file --json").expect_code(1);
    assert_eq!(ran.json()["error"]["code"], "storage");
}

#[test]
fn unicode_names_of_the_specification_work() {
    let world = World::new();
    for name in ["技能", "мой-навык", "café"] {
        world.run_words(&["create", name]).expect_code(0);
        world.run_words(&["validate", name]).expect_code(0);
    }
}
