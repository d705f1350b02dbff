//! `skillbox create`: valid names create a working skill, invalid names create nothing, nothing is overwritten.

use std::fs;

use crate::cli::{Cli, is_executable};

/// Traversal, absolute, separator, metacharacter and blank names.
const INVALID_NAMES: &[&str] = &[
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
    let cli = Cli::new();
    insta::assert_snapshot!(cli.run("create log-reader --dir skills").transcript(), @"
    exit code 0
    --- stdout
    created log-reader in skills/log-reader

      SKILL.md               instructions for the agent; start here
      scripts/count.sh       a working example script
      references/output.md   details that agents read only when needed
      assets/report.md       files for the output: templates, fonts, data

    next steps
      1. describe in SKILL.md what the skill does and when to use it
      2. skillbox validate skills/log-reader
      3. skillbox run skills/log-reader --script scripts/count.sh -- SKILL.md
    --- stderr
    ");
    let dir = cli.work_dir().join("skills/log-reader");

    cli.run("validate skills/log-reader").expect_code(0);
    let list = cli.run("list --skills skills --json").expect_code(0).json();
    assert_eq!(list["skills"][0]["name"], "log-reader");
    assert_eq!(list["diagnostics"].as_array().unwrap().len(), 0, "{list}");
    assert_eq!(list["skills"][0]["resources"]["script"], 1);

    let script = dir.join("scripts/count.sh");
    assert!(is_executable(&script));
    let counted = cli.run_program(&script, &[], "one two\nthree\n").expect_code(0);
    assert_eq!(counted.stdout, "{\"lines\": 2, \"words\": 3, \"bytes\": 14}\n");
    let counted = cli
        .run_program(&script, &[dir.join("SKILL.md").to_str().unwrap()], "")
        .expect_code(0);
    assert!(counted.json()["lines"].as_u64() > Some(5));
    cli.run_program(&script, &["/nowhere"], "").expect_code(1);
}

#[test]
fn the_template_says_when_to_use_the_skill_in_its_description_only() {
    let cli = Cli::new();
    cli.run("create my-skill").expect_code(0);
    let text = fs::read_to_string(cli.work_dir().join("my-skill/SKILL.md")).unwrap();
    let (_, body) = text[3..].split_once("\n---\n").unwrap();
    assert!(text.contains("Use when"), "{text}");
    assert!(!body.to_lowercase().contains("when to use"), "{body}");
}

#[test]
fn invalid_names_are_refused_with_a_reason_and_create_nothing() {
    let cli = Cli::new();
    for name in INVALID_NAMES {
        let output = cli.run_args(&["create", "--json", "--", name]).expect_code(1);
        let error = &output.json()["error"];
        assert_eq!(error["code"], "invalid_request", "{name:?}");
        assert!(
            error["message"].as_str().unwrap().len() > 10 && error["hint"].is_string(),
            "{name:?}: {error}"
        );
    }
    assert_eq!(fs::read_dir(cli.work_dir()).unwrap().count(), 0);
    // The control: the same with a valid name.
    cli.run_args(&["create", "--json", "--", "good-name"]).expect_code(0);
}

#[test]
fn existing_files_are_never_overwritten() {
    let cli = Cli::new();
    cli.run("create my-skill").expect_code(0);
    cli.write_file("my-skill/SKILL.md", "mine");
    let again = cli.run("create my-skill --json").expect_code(1);
    assert_eq!(again.json()["error"]["code"], "already_exists");
    assert_eq!(
        fs::read_to_string(cli.work_dir().join("my-skill/SKILL.md")).unwrap(),
        "mine"
    );

    // A file and a dangling link are not overwritten either.
    cli.write_file("a-file", "mine");
    std::os::unix::fs::symlink("nowhere", cli.work_dir().join("a-link")).unwrap();
    for name in ["a-file", "a-link"] {
        cli.run(&format!("create {name}")).expect_code(1);
    }
    let mut entries: Vec<_> = fs::read_dir(cli.work_dir())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    entries.sort();
    assert_eq!(entries, ["a-file", "a-link", "my-skill"], "no other files are created");
}

#[test]
fn an_unwritable_directory_is_a_storage_error() {
    let cli = Cli::new();
    cli.write_file("a-file", "");
    let output = cli.run("create my-skill --dir a-file --json").expect_code(1);
    assert_eq!(output.json()["error"]["code"], "storage");
}

#[test]
fn unicode_names_are_accepted() {
    let cli = Cli::new();
    for name in ["技能", "мой-навык", "café"] {
        cli.run_args(&["create", name]).expect_code(0);
        cli.run_args(&["validate", name]).expect_code(0);
    }
}
