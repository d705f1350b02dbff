//! Help, completions and manual pages.

use crate::program::World;

const COMMANDS: &[&str] = &[
    "demo",
    "list",
    "info",
    "search",
    "create",
    "validate",
    "read-properties",
    "to-prompt",
    "prompt",
    "tools",
    "call",
    "run",
    "completions",
    "man",
    "help",
];

#[test]
fn the_help_fits_80_columns_and_every_command_has_examples() {
    let world = World::new();
    let top = world.run("--help").expect_code(0).stdout;
    for command in COMMANDS {
        assert!(top.contains(&format!("\n  {command}")), "{command} is not in the help");
        let help = world.run(&format!("{command} --help")).expect_code(0).stdout;
        assert!(help.contains("Examples:\n  skillbox "), "{command} has no examples");
        assert_eq!(help, world.run(&format!("help {command}")).expect_code(0).stdout);
        for line in top.lines().chain(help.lines()) {
            assert!(line.chars().count() <= 80, "{command}: {line}");
        }
    }
}

#[test]
fn usage_errors_go_to_stderr_with_code_2() {
    let world = World::new();
    for line in [
        "",
        "nonsense",
        "list --nonsense",
        "info",
        "validate",
        "search",
        "search x --limit 0",
        "help nonsense",
        "create",
        "list -v -q",
    ] {
        let ran = world.run(line).expect_code(2);
        assert_eq!(ran.stdout, "", "{line}");
        assert!(!ran.stderr.is_empty(), "{line}");
    }
    assert!(
        world.run("lst").stderr.contains("list"),
        "a slip gets the nearest command"
    );
}

#[test]
fn programs_get_usage_errors_as_json_too() {
    let world = World::new();
    let ran = world.run("--json info").expect_code(2);
    assert_eq!(ran.json()["error"]["code"], "invalid_request");
    assert!(
        ran.json()["error"]["message"].as_str().unwrap().contains("required"),
        "{}",
        ran.stdout
    );
    assert_eq!(world.run("info -- --json --x").expect_code(2).stdout, "");
}

#[test]
fn help_errors_lists_every_code() {
    let world = World::new();
    let codes = world.run("help errors --json").expect_code(0).json();
    let words = world.run("help errors").expect_code(0).stdout;
    for code in [
        "unknown_skill",
        "unknown_doc",
        "invalid_request",
        "path_escape",
        "host_not_allowed",
        "profile_unknown",
        "isolation_unavailable",
        "executor_unavailable",
        "image_missing",
        "limit_exceeded",
        "not_loaded",
        "tool_not_allowed",
        "load_limit",
        "artifact_missing",
        "busy",
    ] {
        assert!(
            codes.as_array().unwrap().iter().any(|entry| entry["code"] == code),
            "{code}"
        );
        assert!(words.contains(code), "{code}");
    }
}

#[test]
fn help_findings_lists_every_code() {
    let world = World::new();
    let codes = world.run("help findings --json").expect_code(0).json();
    let words = world.run("help findings").expect_code(0).stdout;
    for code in [
        "nested_skill",
        "invalid_yaml",
        "name_mismatch",
        "long_body",
        "unreadable",
    ] {
        assert!(
            codes.as_array().unwrap().iter().any(|entry| entry["code"] == code),
            "{code}"
        );
        assert!(words.contains(code), "{code}");
    }
}

#[test]
fn completions_for_every_shell_know_the_commands() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = world.run(&format!("completions {shell}")).expect_code(0).stdout;
        assert!(
            script.contains("read-properties") && script.contains("--skills") | script.contains("l skills"),
            "{shell}"
        );
    }
    world.run("completions tcsh").expect_code(2);
    // Bash itself accepts its script.
    let script = world.run("completions bash").stdout;
    world.run_other("/bin/bash".as_ref(), &["-n"], &script).expect_code(0);
}

#[test]
fn manual_pages_for_the_program_and_every_command() {
    let world = World::new();
    assert!(world.run("man").expect_code(0).stdout.contains(".TH skillbox 1"));
    assert!(
        world
            .run("man validate")
            .expect_code(0)
            .stdout
            .contains(".TH skillbox-validate 1")
    );
    world.run("man nonsense").expect_code(2);
    world.run("man --out-dir man1").expect_code(0);
    for command in COMMANDS {
        assert!(
            world.work().join(format!("man1/skillbox-{command}.1")).exists(),
            "{command}"
        );
    }
}
