//! Who can give a secret or a host to a run.

use std::fs;

use serde_json::json;

use super::support::{VALUE, VARIABLE, env_secret, with_config};
use crate::harness::Fixture;

const SHOW_TOKEN: &str = "printf '%s' \"${TOKEN:-none}\" | wc -c";

/// What the script sees of the secret, as the number of its bytes.
fn has_value(text: &str) -> bool {
    text.trim() == VALUE.len().to_string()
}

#[test]
fn only_the_operator_gives_a_secret_to_a_run() {
    let fixture = Fixture::new();
    let run = |config: &str, args: &[&str]| {
        let invocation = fixture.request(json!({"command": SHOW_TOKEN})).with_args(args);
        with_config(&fixture, invocation, config).run()
    };
    let without = run(&env_secret(""), &[]).expect_report();
    assert_eq!(without.stdout().trim(), "4", "{}", without.describe());
    assert!(without.json().get("secrets").is_none(), "{}", without.describe());
    // By a flag for one call, and by the configuration for a skill.
    let by_flag = run(&env_secret(""), &["--secret", "TOKEN"]).expect_report();
    let by_config = run(&env_secret("skills = [\"probe\"]\n"), &[]).expect_report();
    let other_skill = run(&env_secret("skills = [\"other\"]\n"), &[]).expect_report();
    assert!(!has_value(other_skill.stdout()), "{}", other_skill.describe());
    for answer in [by_flag, by_config] {
        assert!(has_value(answer.stdout()), "{}", answer.describe());
        assert_eq!(answer["secrets"], json!({"TOKEN": "env"}), "{}", answer.describe());
        let warnings = answer["warnings"].to_string();
        assert!(warnings.contains("TOKEN") && warnings.contains("inject"), "{warnings}");
    }
    // A request has no field for it.
    for field in ["secrets", "secret", "grants"] {
        let invocation = fixture.request(json!({"command": "true", field: ["TOKEN"]}));
        let answer = with_config(&fixture, invocation, &env_secret("")).run();
        assert_eq!(answer.expect_refusal().0, "invalid_request", "{field}");
    }
}

#[test]
fn an_approval_grants_a_secret_until_the_skill_changes() {
    let fixture = Fixture::new();
    let run = || {
        let invocation = fixture.request(json!({"command": SHOW_TOKEN}));
        with_config(&fixture, invocation, &env_secret("")).run().expect_report()
    };
    assert!(!has_value(run().stdout()));
    let approved = fixture
        .command(&["approve", "probe", "--yes", "--secret", "TOKEN"])
        .run();
    assert_eq!(approved.code, Some(0), "{}", approved.describe());
    assert!(has_value(run().stdout()));
    let path = fixture.skill_path("probe", "SKILL.md");
    fs::write(&path, fs::read_to_string(&path).unwrap() + "changed\n").unwrap();
    assert!(!has_value(run().stdout()));
}

#[test]
fn an_approval_grants_a_host() {
    let fixture = Fixture::new();
    let run = || {
        fixture
            .request(json!({"command": "getent hosts api.test"}))
            .run()
            .expect_report()
    };
    let before = run();
    assert_eq!(
        (before["profile"].as_str(), before["exit_code"].as_i64()),
        (Some("default"), Some(2))
    );
    let approved = fixture
        .command(&["approve", "probe", "--yes", "--network", "api.test"])
        .run();
    assert_eq!(approved.code, Some(0), "{}", approved.describe());
    let answer = run();
    assert_eq!(answer["profile"], "network", "{}", answer.describe());
    assert!(answer.stdout().contains("api.test"), "{}", answer.describe());
    // A profile that the caller names is never replaced.
    let named = fixture
        .request(json!({"command": "getent hosts api.test", "profile": "default"}))
        .run()
        .expect_report();
    assert_eq!(named["exit_code"], 2, "{}", named.describe());
    assert!(named.mentions("profile default has no network"), "{}", named.describe());
}

#[test]
fn a_skill_of_the_working_directory_gets_nothing_by_its_name() {
    let fixture = Fixture::new();
    let config = env_secret("skills = [\"probe\"]\n");
    let run = |directory: &str, args: &[&str]| {
        let invocation = fixture.request(json!({"command": SHOW_TOKEN}));
        let invocation = invocation.in_dir(&fixture.path(directory)).with_args(args);
        with_config(&fixture, invocation, &config).run().expect_report()
    };
    assert!(has_value(run("scratch", &[]).stdout()), "the control");
    // The skills are below this working directory.
    assert!(!has_value(run("", &[]).stdout()));
    assert!(has_value(run("", &["--secret", "TOKEN"]).stdout()));
}

#[test]
fn a_declared_secret_that_nobody_granted_names_the_command() {
    let fixture = Fixture::new();
    let path = fixture.skill_path("probe", "SKILL.md");
    let text = fs::read_to_string(&path).unwrap();
    let metadata = "metadata:\n  skillbox-secrets: \"TOKEN\"\n";
    fs::write(
        &path,
        text.replacen("description:", &format!("{metadata}description:"), 1),
    )
    .unwrap();
    let run = |args: &[&str]| {
        let invocation = fixture.request(json!({"command": "true"})).with_args(args);
        with_config(&fixture, invocation, &env_secret("")).run().expect_report()
    };
    let answer = run(&[]);
    let command = "skillbox approve probe --secret TOKEN";
    assert!(answer.mentions(command), "{}", answer.describe());
    let info = || fixture.command(&["info", "probe", "--json"]).run();
    assert_eq!(info().json()["needs"]["grant_with"], command, "{}", info().describe());
    let granted = run(&["--secret", "TOKEN"]);
    assert!(!granted.mentions("is not granted"), "{}", granted.describe());
    let approved = fixture
        .command(&["approve", "probe", "--yes", "--secret", "TOKEN"])
        .run();
    assert_eq!(approved.code, Some(0), "{}", approved.describe());
    assert_eq!(info().json()["needs"]["missing"], json!({}), "{}", info().describe());
}

#[test]
fn the_value_of_a_secret_in_a_variable_of_the_request_is_refused() {
    let fixture = Fixture::new();
    let run = |variable: &str, value: &str, args: &[&str]| {
        let invocation = fixture.request(json!({"command": "true", "env": {variable: value}}));
        with_config(&fixture, invocation.with_args(args), &env_secret("")).run()
    };
    assert_eq!(run("OTHER", "harmless", &[]).code, Some(0), "the control");
    for value in [VALUE.to_owned(), format!("Bearer {VALUE}"), VALUE.replace('%', "%25")] {
        let answer = run("OTHER", &value, &[]);
        assert_eq!(answer.expect_refusal(), ("secret_not_granted", Some("env.OTHER")));
        assert!(
            answer.mentions("--secret TOKEN") && !answer.mentions(VALUE),
            "{}",
            answer.describe()
        );
    }
    let taken = run("TOKEN", "harmless", &["--secret", "TOKEN"]);
    assert_eq!(taken.expect_refusal(), ("invalid_request", Some("env.TOKEN")));
}

#[test]
fn a_container_never_gets_a_value_that_the_host_did_not_allow_it() {
    let fixture = Fixture::new();
    let config = format!("[secrets.TOKEN]\nfrom = \"env:{VARIABLE}\"\nhosts = [\"api.test\"]\n");
    let invocation = fixture
        .request(json!({"command": "true", "executor": "docker"}))
        .with_args(&["--secret", "TOKEN"]);
    let answer = with_config(&fixture, invocation, &config).run();
    assert_eq!(answer.expect_refusal().0, "executor_unavailable");
    assert!(
        answer.mentions("TOKEN") && answer.mentions("--executor local"),
        "{}",
        answer.describe()
    );
}

#[test]
fn an_untrusted_config_file_configures_no_secret() {
    let fixture = Fixture::new();
    let project = fixture.path("scratch/project");
    fs::create_dir_all(&project).unwrap();
    fs::write(project.join("skillbox.toml"), env_secret("skills = [\"probe\"]\n")).unwrap();
    let run = || {
        let invocation = fixture.request(json!({"command": SHOW_TOKEN})).in_dir(&project);
        invocation.env(VARIABLE, VALUE).run()
    };
    let refused = run();
    assert_eq!(refused.expect_refusal().0, "untrusted_setting");
    assert!(refused.mentions("secrets"), "{}", refused.describe());
    let trusted = fixture.command(&["config", "trust", "--yes"]).in_dir(&project).run();
    assert_eq!(trusted.code, Some(0), "{}", trusted.describe());
    assert!(has_value(run().expect_report().stdout()));
}
