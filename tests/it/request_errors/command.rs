//! What is run, by which skill, with which variables, under which profile.

use serde_json::{Value, json};

use super::refused;
use crate::lab::Scene;

#[test]
fn unknown_skills_and_profiles_are_named_with_the_nearest() {
    let scene = Scene::new();
    refused(
        &scene,
        json!({"skill": "porbe", "command": "echo it ran"}),
        "unknown_skill",
        "skill",
    );
    refused(
        &scene,
        json!({"skill": "", "command": "echo it ran"}),
        "unknown_skill",
        "skill",
    );
    refused(
        &scene,
        json!({"skill": "../probe", "command": "echo it ran"}),
        "unknown_skill",
        "skill",
    );
    refused(
        &scene,
        json!({"command": "echo it ran", "with_skills": ["porbe"]}),
        "unknown_skill",
        "with_skills[0]",
    );
    refused(
        &scene,
        json!({"command": "echo it ran", "profile": "stirct"}),
        "profile_unknown",
        "profile",
    );
    refused(
        &scene,
        json!({"command": "echo it ran", "profile": "../default"}),
        "profile_unknown",
        "profile",
    );
    let said = |request: Value| {
        scene.ask(request).go().json()["error"]["message"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert!(said(json!({"skill": "porbe", "command": "x"})).contains("probe"));
    assert!(said(json!({"command": "x", "profile": "stirct"})).contains("strict"));
    // A skill that is there but cannot be used is told apart from one that is not.
    let missing = scene
        .tell(&["run", "--json", "no-such-skill", "--", "echo", "it ran"])
        .go();
    assert_eq!(
        (missing.refused(), missing.code),
        (("unknown_skill", Some("skill")), Some(125))
    );
}

#[test]
fn exactly_one_thing_is_run() {
    let scene = Scene::new();
    refused(
        &scene,
        json!({"command": "echo it ran", "script": "scripts/argv.py"}),
        "invalid_request",
        "script",
    );
    refused(
        &scene,
        json!({"command": "echo it ran", "argv": ["echo", "it ran"]}),
        "invalid_request",
        "argv",
    );
    refused(
        &scene,
        json!({"script": "scripts/argv.py", "argv": ["echo", "it ran"]}),
        "invalid_request",
        "argv",
    );
    refused(
        &scene,
        json!({"command": "echo it ran", "args": ["x"]}),
        "invalid_request",
        "args",
    );
    refused(&scene, json!({"command": ""}), "invalid_request", "command");
    refused(&scene, json!({"command": " \n\t"}), "invalid_request", "command");
    refused(&scene, json!({"argv": [""]}), "invalid_request", "argv[0]");
    refused(
        &scene,
        json!({"command": "echo it ran\u{0}"}),
        "invalid_request",
        "command",
    );
    refused(
        &scene,
        json!({"argv": ["echo", "it ran\u{0}"]}),
        "invalid_request",
        "argv[1]",
    );
    refused(
        &scene,
        json!({"script": "scripts/none.py"}),
        "invalid_request",
        "script",
    );
    refused(
        &scene,
        json!({"script": "../probe/scripts/argv.py"}),
        "path_escape",
        "script",
    );
    refused(&scene, json!({"script": "/usr/bin/env"}), "path_escape", "script");
    let answer = scene.ask(json!({})).go();
    assert_eq!((answer.refused().0, answer.code), ("invalid_request", Some(125)));
}

#[test]
fn bad_variables_are_refused() {
    let scene = Scene::new();
    for (name, field) in [
        ("1A", "env.1A"),
        ("A-B", "env.A-B"),
        ("WORK_DIR", "env.WORK_DIR"),
        ("A=B", "env.A=B"),
    ] {
        refused(
            &scene,
            json!({"command": "echo it ran", "env": {name: "x"}}),
            "invalid_request",
            field,
        );
    }
    refused(
        &scene,
        json!({"command": "echo it ran", "env": {"A": "x\u{0}"}}),
        "invalid_request",
        "env.A",
    );
    // On the command line, too.
    for bad in ["A", "=x", "1A=x", ""] {
        let answer = scene
            .tell(&["run", "probe", "--json", "--env", bad, "--", "echo it ran"])
            .go();
        assert_eq!(answer.code, Some(125), "{bad:?}: {}", answer.told());
        assert!(!answer.mentions("it ran\\n"));
    }
}

#[test]
fn without_isolation_nothing_runs_unless_the_host_says_so() {
    let scene = Scene::new();
    let answer = scene
        .ask(json!({"command": "echo it ran", "profile": "unconfined"}))
        .go();
    assert_eq!(
        (answer.refused().1, answer.code),
        (Some("profile"), Some(125)),
        "{}",
        answer.told()
    );
    assert!(!answer.mentions("it ran"));
    assert!(
        answer["error"]["hint"].as_str().is_some_and(|hint| !hint.is_empty()),
        "{}",
        answer.told()
    );
}

#[test]
fn a_broken_profile_is_never_replaced() {
    let scene = Scene::new();
    let stricter = "name: default\ndescription: the host's own\nextends: strict\nlimts:\n  pids: 4\n";
    std::fs::write(scene.path("profiles/default.yaml"), stricter).unwrap();
    for request in [
        json!({"command": "echo it ran"}),
        json!({"command": "echo it ran", "profile": "default"}),
    ] {
        let answer = scene.ask(request).go();
        assert_eq!(
            (answer.refused().0, answer.code),
            ("profile_invalid", Some(125)),
            "{}",
            answer.told()
        );
    }
    // Other profiles are not touched by it.
    let other = scene
        .ask(json!({"command": "echo it ran", "profile": "strict"}))
        .go()
        .reported();
    assert_eq!(other.stdout(), "it ran\n");
}
