//! Errors about the command, the skill, the variables and the profile.

use serde_json::{Value, json};

use super::assert_request_refused;
use crate::harness::Fixture;

#[test]
fn unknown_skill_and_profile_errors_name_the_nearest() {
    let fixture = Fixture::new();
    assert_request_refused(
        &fixture,
        json!({"skill": "porbe", "command": "echo it ran"}),
        "unknown_skill",
        "skill",
    );
    assert_request_refused(
        &fixture,
        json!({"skill": "", "command": "echo it ran"}),
        "unknown_skill",
        "skill",
    );
    assert_request_refused(
        &fixture,
        json!({"skill": "../probe", "command": "echo it ran"}),
        "unknown_skill",
        "skill",
    );
    assert_request_refused(
        &fixture,
        json!({"command": "echo it ran", "with_skills": ["porbe"]}),
        "unknown_skill",
        "with_skills[0]",
    );
    assert_request_refused(
        &fixture,
        json!({"command": "echo it ran", "profile": "stirct"}),
        "profile_unknown",
        "profile",
    );
    assert_request_refused(
        &fixture,
        json!({"command": "echo it ran", "profile": "../default"}),
        "profile_unknown",
        "profile",
    );
    let message_of = |request: Value| {
        fixture.request(request).run().json()["error"]["message"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert!(message_of(json!({"skill": "porbe", "command": "x"})).contains("probe"));
    assert!(message_of(json!({"command": "x", "profile": "stirct"})).contains("strict"));
    // The command line reports an unknown skill in the same way.
    let missing = fixture
        .command(&["run", "--json", "no-such-skill", "--", "echo", "it ran"])
        .run();
    assert_eq!(
        (missing.expect_refusal(), missing.code),
        (("unknown_skill", Some("skill")), Some(125))
    );
}

#[test]
fn exactly_one_of_command_script_and_argv_is_accepted() {
    let fixture = Fixture::new();
    assert_request_refused(
        &fixture,
        json!({"command": "echo it ran", "script": "scripts/argv.py"}),
        "invalid_request",
        "script",
    );
    assert_request_refused(
        &fixture,
        json!({"command": "echo it ran", "argv": ["echo", "it ran"]}),
        "invalid_request",
        "argv",
    );
    assert_request_refused(
        &fixture,
        json!({"script": "scripts/argv.py", "argv": ["echo", "it ran"]}),
        "invalid_request",
        "argv",
    );
    assert_request_refused(
        &fixture,
        json!({"command": "echo it ran", "args": ["x"]}),
        "invalid_request",
        "args",
    );
    assert_request_refused(&fixture, json!({"command": ""}), "invalid_request", "command");
    assert_request_refused(&fixture, json!({"command": " \n\t"}), "invalid_request", "command");
    assert_request_refused(&fixture, json!({"argv": [""]}), "invalid_request", "argv[0]");
    assert_request_refused(
        &fixture,
        json!({"command": "echo it ran\u{0}"}),
        "invalid_request",
        "command",
    );
    assert_request_refused(
        &fixture,
        json!({"argv": ["echo", "it ran\u{0}"]}),
        "invalid_request",
        "argv[1]",
    );
    assert_request_refused(
        &fixture,
        json!({"script": "scripts/none.py"}),
        "invalid_request",
        "script",
    );
    assert_request_refused(
        &fixture,
        json!({"script": "../probe/scripts/argv.py"}),
        "path_escape",
        "script",
    );
    assert_request_refused(&fixture, json!({"script": "/usr/bin/env"}), "path_escape", "script");
    let answer = fixture.request(json!({})).run();
    assert_eq!((answer.expect_refusal().0, answer.code), ("invalid_request", Some(125)));
}

#[test]
fn invalid_variables_are_refused() {
    let fixture = Fixture::new();
    for (name, field) in [
        ("1A", "env.1A"),
        ("A-B", "env.A-B"),
        ("WORK_DIR", "env.WORK_DIR"),
        ("A=B", "env.A=B"),
    ] {
        assert_request_refused(
            &fixture,
            json!({"command": "echo it ran", "env": {name: "x"}}),
            "invalid_request",
            field,
        );
    }
    assert_request_refused(
        &fixture,
        json!({"command": "echo it ran", "env": {"A": "x\u{0}"}}),
        "invalid_request",
        "env.A",
    );
    // The command line refuses them as well.
    for bad in ["A", "=x", "1A=x", ""] {
        let answer = fixture
            .command(&["run", "probe", "--json", "--env", bad, "--", "echo it ran"])
            .run();
        assert_eq!(answer.code, Some(125), "{bad:?}: {}", answer.describe());
        assert!(!answer.mentions("it ran\\n"));
    }
}

#[test]
fn the_unconfined_profile_needs_permission_of_the_host() {
    let fixture = Fixture::new();
    let answer = fixture
        .request(json!({"command": "echo it ran", "profile": "unconfined"}))
        .run();
    assert_eq!(
        (answer.expect_refusal().1, answer.code),
        (Some("profile"), Some(125)),
        "{}",
        answer.describe()
    );
    assert!(!answer.mentions("it ran"));
    assert!(
        answer["error"]["hint"].as_str().is_some_and(|hint| !hint.is_empty()),
        "{}",
        answer.describe()
    );
}

#[test]
fn an_invalid_profile_is_never_replaced_by_another() {
    let fixture = Fixture::new();
    let stricter = "name: default\ndescription: the host's own\nextends: strict\nlimts:\n  pids: 4\n";
    std::fs::write(fixture.path("profiles/default.yaml"), stricter).unwrap();
    for request in [
        json!({"command": "echo it ran"}),
        json!({"command": "echo it ran", "profile": "default"}),
    ] {
        let answer = fixture.request(request).run();
        assert_eq!(
            (answer.expect_refusal().0, answer.code),
            ("profile_invalid", Some(125)),
            "{}",
            answer.describe()
        );
    }
    // Other profiles are not affected.
    let other = fixture
        .request(json!({"command": "echo it ran", "profile": "strict"}))
        .run()
        .expect_report();
    assert_eq!(other.stdout(), "it ran\n");
}
