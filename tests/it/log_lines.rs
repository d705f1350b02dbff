//! The log, which is one JSON object per line.

use serde_json::{Value, json};

use crate::cli::Cli;

fn cli_with_skill() -> Cli {
    let cli = Cli::new();
    cli.write_file(
        "skills/git/SKILL.md",
        "---\nname: git\ndescription: Reads history.\nallowed-tools: Bash(git:*)\n---\nBody.\n",
    );
    cli
}

/// Runs a call and returns the lines that it logs to stderr.
fn log_of(cli: &Cli, level: &str, tool: &str, arguments: &Value, words: &[&str]) -> Vec<Value> {
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
    let output = cli.run_args(&[&line[..], words].concat());
    output
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect()
}

fn find_line<'l>(log: &'l [Value], message: &str) -> &'l Value {
    let found = log
        .iter()
        .find(|line| line["message"].as_str().is_some_and(|text| text.contains(message)));
    found.unwrap_or_else(|| panic!("no {message:?} in {log:#?}"))
}

#[test]
fn the_steps_of_a_call_are_logged_with_their_fields() {
    let cli = cli_with_skill();
    let lines = log_of(&cli, "info", "skill_load", &json!({"skill": "git"}), &[]);
    assert_eq!(find_line(&lines, "Discovered 1 skills from 1 sources")["level"], "INFO");
    assert_eq!(
        find_line(&lines, "Skill 'git' loaded (0 resources discovered)")["skill"],
        "git"
    );
    let response = find_line(&lines, "tool.response");
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
fn refusals_are_logged_as_warnings() {
    let cli = cli_with_skill();
    log_of(&cli, "off", "skill_load", &json!({"skill": "git"}), &[]);
    let run = json!({"skill": "git", "command": "rm x"});
    let lines = log_of(&cli, "warn", "skill_run", &run, &["--policy", "restrict"]);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(
        (&lines[0]["level"], &lines[0]["tool"]),
        (&json!("WARN"), &json!("skill_run"))
    );
    cli.write_file("skills/pdf/SKILL.md", "---\nname: pdf\ndescription: d\n---\n");
    log_of(&cli, "off", "before_agent", &json!({}), &[]);
    let lines = log_of(
        &cli,
        "warn",
        "skill_load",
        &json!({"skill": "pdf"}),
        &["--max-loaded", "1"],
    );
    assert_eq!(find_line(&lines, "limit reached")["limit"], 1);
}

#[test]
fn a_run_logs_its_spans() {
    let cli = cli_with_skill();
    let lines = log_of(
        &cli,
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
fn nothing_is_logged_by_default() {
    let cli = cli_with_skill();
    let output = cli.run("--skills skills call skill_list").expect_code(0);
    assert_eq!(output.stderr, "");
}
