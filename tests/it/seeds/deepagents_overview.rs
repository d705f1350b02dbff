//! The overview: what document 000 adds to it, and what it must not contain.

use serde_json::json;

use crate::cli::Cli;
use crate::disclosure::{call_ok, write_skill};

fn cli_with_hint() -> Cli {
    let cli = Cli::new();
    write_skill(
        &cli,
        "deploy",
        "description: Deploys.\nargument-hint: '[env-name]'",
        "Deploy to $ARGUMENTS.\n",
    );
    cli
}

#[test]
fn seed_000_section_8_1_argument_hint_in_the_overview() {
    let cli = cli_with_hint();
    let prompt = |dialect: &str| {
        cli.run(&format!("prompt --skills skills --dialect {dialect}"))
            .expect_code(0)
            .stdout
    };
    let check = |dialect: &str, expected: &str| {
        let prompt = prompt(dialect);
        assert!(prompt.contains(expected), "{dialect}: {prompt}");
    };
    check(
        "deepagents",
        "- **deploy**: Deploys.\n  -> Use `load_skill(\"deploy\", args=\"[env-name]\")` to read full instructions",
    );
    check(
        "saa",
        "- **deploy**: Deploys. (arguments: [env-name]) → Supporting files",
    );
    check("trpc", "- deploy: Deploys. (arguments: [env-name])\n");
    check("skillbox", "- deploy: Deploys. (arguments: [env-name])\n");
}

/// What the overview shows can be called.
#[test]
fn seed_000_section_8_1_the_arguments_of_the_hint_are_accepted() {
    let cli = cli_with_hint();
    let check = |dialect: &str, tool: &str, arguments: serde_json::Value, key: &str| {
        let flags = format!("--dialect {dialect}");
        let loaded = call_ok(&cli, tool, &arguments, &flags).to_string();
        assert!(loaded.contains("Deploy to staging."), "{dialect}: {loaded}");
        let tools = cli
            .run(&format!("tools --skills skills --dialect {dialect}"))
            .expect_code(0)
            .json();
        assert!(
            tools[0]["inputSchema"]["properties"][key].is_object(),
            "{dialect}: {tools}"
        );
    };
    check(
        "deepagents",
        "load_skill",
        json!({"skill_name": "deploy", "args": "staging"}),
        "args",
    );
    check(
        "saa",
        "read_skill",
        json!({"skill_name": "deploy", "arguments": "staging"}),
        "arguments",
    );
    check(
        "trpc",
        "skill_load",
        json!({"skill": "deploy", "arguments": "staging"}),
        "arguments",
    );

    // Without such a skill, the tool is exactly that of section 2.3.1.
    let plain = Cli::new();
    plain.add_skill("skills/plain", "Plain.");
    let tools = plain
        .run("tools --skills skills --dialect deepagents")
        .expect_code(0)
        .json();
    let properties = tools[0]["inputSchema"]["properties"].as_object().unwrap();
    assert_eq!(properties.keys().collect::<Vec<_>>(), ["skill_name"]);
}

#[test]
fn seed_000_section_3_5_a_broken_skill_does_not_change_the_prompt() {
    let cli = Cli::new();
    cli.add_skill("skills/good", "Good.");
    let prompt = || {
        cli.run("prompt --skills skills --dialect deepagents --log warn")
            .expect_code(0)
    };
    let without = prompt();
    cli.write_file("skills/bad/SKILL.md", "---\nname: bad\n---\nNo description.\n");
    let with = prompt();
    assert_eq!(
        with.stdout, without.stdout,
        "the prompt is that of section 3.5, byte by byte"
    );
    assert!(with.stdout.contains("- **good**: Good."), "{}", with.stdout);
    assert_eq!(without.stderr, "");
    let logged: serde_json::Value = serde_json::from_str(with.stderr.trim()).unwrap();
    assert_eq!(
        (&logged["level"], &logged["code"]),
        (&json!("WARN"), &json!("missing_description"))
    );
    let listed = cli.run("list --skills skills").expect_code(0);
    assert!(
        listed.stderr.contains("error[missing_description]"),
        "{}",
        listed.stderr
    );
}
