//! Help, completions and manual pages.

use crate::cli::Cli;

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
    "batch",
    "completions",
    "man",
    "help",
];

#[test]
fn the_help_fits_80_columns_and_every_command_has_examples() {
    let cli = Cli::new();
    let top = cli.run("--help").expect_code(0).stdout;
    for command in COMMANDS {
        assert!(top.contains(&format!("\n  {command}")), "{command} is not in the help");
        let help = cli.run(&format!("{command} --help")).expect_code(0).stdout;
        assert!(help.contains("Examples:\n  skillbox "), "{command} has no examples");
        assert_eq!(help, cli.run(&format!("help {command}")).expect_code(0).stdout);
        for line in top.lines().chain(help.lines()) {
            assert!(line.chars().count() <= 80, "{command}: {line}");
        }
    }
}

#[test]
fn usage_errors_go_to_stderr_with_code_2() {
    let cli = Cli::new();
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
        let output = cli.run(line).expect_code(2);
        assert_eq!(output.stdout, "", "{line}");
        assert!(!output.stderr.is_empty(), "{line}");
    }
    assert!(
        cli.run("lst").stderr.contains("list"),
        "an error names the nearest command"
    );
}

#[test]
fn usage_errors_are_json_with_the_json_flag() {
    let cli = Cli::new();
    let output = cli.run("--json info").expect_code(2);
    assert_eq!(output.json()["error"]["code"], "invalid_request");
    assert!(
        output.json()["error"]["message"].as_str().unwrap().contains("required"),
        "{}",
        output.stdout
    );
    assert_eq!(cli.run("info -- --json --x").expect_code(2).stdout, "");
}

#[test]
fn help_errors_lists_every_code() {
    let cli = Cli::new();
    let codes = cli.run("help errors --json").expect_code(0).json();
    let text = cli.run("help errors").expect_code(0).stdout;
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
        assert!(text.contains(code), "{code}");
    }
}

#[test]
fn help_findings_lists_every_code() {
    let cli = Cli::new();
    let codes = cli.run("help findings --json").expect_code(0).json();
    let text = cli.run("help findings").expect_code(0).stdout;
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
        assert!(text.contains(code), "{code}");
    }
}

#[test]
fn completions_for_every_shell_contain_the_commands() {
    let cli = Cli::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = cli.run(&format!("completions {shell}")).expect_code(0).stdout;
        assert!(
            script.contains("read-properties") && script.contains("--skills") | script.contains("l skills"),
            "{shell}"
        );
    }
    cli.run("completions tcsh").expect_code(2);
    // Bash accepts the script.
    let script = cli.run("completions bash").stdout;
    cli.run_program("/bin/bash".as_ref(), &["-n"], &script).expect_code(0);
}

#[test]
fn man_writes_pages_for_the_program_and_every_command() {
    let cli = Cli::new();
    assert!(cli.run("man").expect_code(0).stdout.contains(".TH skillbox 1"));
    assert!(
        cli.run("man validate")
            .expect_code(0)
            .stdout
            .contains(".TH skillbox-validate 1")
    );
    cli.run("man nonsense").expect_code(2);
    cli.run("man --out-dir man1").expect_code(0);
    for command in COMMANDS {
        assert!(
            cli.work_dir().join(format!("man1/skillbox-{command}.1")).exists(),
            "{command}"
        );
    }
}
