//! The text of errors for a model over MCP, and the log of runs.

use serde_json::{Value, json};

use super::mcp_text_client::McpTextClient;
use crate::cli::Cli;

fn client(cli: &Cli, arguments: &[&str]) -> McpTextClient {
    McpTextClient::connect(&cli.work_dir().join("skills"), &cli.work_dir().join("state"), arguments)
}

#[test]
fn seed_000_section_6_2_the_mcp_text_of_an_error_is_the_message() {
    let cli = Cli::new();
    cli.add_skill("skills/alpha", "A.").add_skill("skills/beta", "B.");
    let mut client = client(&cli, &["--dialect", "deepagents", "--max-loaded", "1"]);
    assert_eq!(
        client.call_refused("load_skill", json!({"skill_name": "gamma"})),
        "Error: Skill 'gamma' not found. Available skills: alpha, beta"
    );
    client.call_ok("load_skill", json!({"skill_name": "alpha"}));
    assert_eq!(
        client.call_ok("load_skill", json!({"skill_name": "alpha"})),
        "Skill 'alpha' is already loaded. Its instructions are already active."
    );
    assert_eq!(
        client.call_refused("load_skill", json!({"skill_name": "beta"})),
        "Error: Cannot load skill 'beta'. Maximum number of simultaneously loaded skills reached (1). Currently loaded: \
         alpha. Consider whether all loaded skills are still needed for the current task."
    );
}

/// Our own dialect has hints, but only those that a model can follow.
#[test]
fn hints_over_mcp_name_no_commands_of_the_operator() {
    let cli = Cli::new();
    cli.add_skill("skills/alpha", "A.");
    let no_daemon = ["--executor", "docker", "--docker-host", "unix:///no/such/socket"];
    let mut client = client(&cli, &no_daemon);
    let run = client.call_refused("skill_run", json!({"skill": "alpha", "command": "true"}));
    assert!(!run.contains("skillbox doctor") && !run.contains("hint"), "{run}");
    let unknown = client.call_refused("skill_load", json!({"skill": "alpah"}));
    assert!(
        unknown.ends_with("\nhint: find the right name with `skill_search`"),
        "{unknown}"
    );
}

#[test]
fn seed_002_logging_one_event_for_each_run_with_its_command() {
    let cli = Cli::new();
    cli.add_skill("skills/alpha", "A.");
    cli.write_file("skills/alpha/scripts/say.sh", "echo \"$@\"\n");
    let runs_of = |args: &[&str]| -> Vec<Value> {
        let output = cli.run_args(&[&["--skills", "skills", "--log", "info"], args].concat());
        let lines = output.stderr.lines().filter_map(|line| serde_json::from_str(line).ok());
        lines.filter(|line: &Value| line["message"] == "run").collect()
    };
    let check = |args: &[&str], command: &str, exit_code: Value, error: Value| {
        let runs = runs_of(args);
        assert_eq!(runs.len(), 1, "{args:?}: {runs:?}");
        let run = &runs[0];
        assert_eq!(
            (&run["level"], &run["command"]),
            (&json!("INFO"), &json!(command)),
            "{run}"
        );
        assert_eq!((&run["exit_code"], &run["error"]), (&exit_code, &error), "{run}");
        assert_eq!(run["skill"], "alpha");
    };
    check(
        &["run", "alpha", "--", "echo hi; exit 3"],
        "echo hi; exit 3",
        json!(3),
        Value::Null,
    );
    check(
        &["run", "alpha", "--", "echo", "a b"],
        "echo a b",
        json!(0),
        Value::Null,
    );
    check(
        &["run", "alpha", "--script", "scripts/say.sh", "--", "one"],
        "scripts/say.sh one",
        json!(0),
        Value::Null,
    );
    let call = json!({"skill": "alpha", "command": "true"}).to_string();
    check(&["call", "skill_run", &call], "true", json!(0), Value::Null);
    check(
        &["run", "alpha", "--profile", "nope", "--", "true"],
        "true",
        Value::Null,
        json!("profile_unknown"),
    );
}

/// A client cannot use another session, so a fork gives it the text and leaves its session as it is.
#[test]
fn seed_000_section_8_1_a_fork_over_mcp_is_text() {
    let cli = Cli::new();
    cli.write_file(
        "skills/survey/SKILL.md",
        "---\nname: survey\ndescription: d\ncontext: fork\nagent: Explore\n---\nLook around.\n",
    );
    let mut client = client(&cli, &[]);
    for _ in 0..20 {
        let text = client.call_ok("skill_load", json!({"skill": "survey"}));
        assert!(
            text.starts_with("The skill survey runs in a context of its own (agent Explore)."),
            "{text}"
        );
        assert!(text.contains("Look around."), "{text}");
    }
    let listed = client.call_ok("skill_list", json!({}));
    assert!(!listed.contains("[Loaded]"), "{listed}");
}
