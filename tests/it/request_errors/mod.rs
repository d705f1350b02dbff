//! Bad input gets an error before anything runs, and the error names the field.

mod command;
mod inputs;
mod limits;
mod shape;

use serde_json::{Value, json};

use crate::lab::Scene;

/// Checks that a request is refused with this code about this field, and that nothing ran.
fn refused(scene: &Scene, request: Value, code: &str, field: &str) {
    let answer = scene.ask(request.clone()).host_allowed().go();
    assert_eq!(answer.refused(), (code, Some(field)), "{request}: {}", answer.told());
    assert_eq!(answer.code, Some(125), "{request}");
    assert!(answer["error"]["hint"].as_str().is_none_or(|hint| !hint.is_empty()));
    assert!(
        std::fs::read_dir(scene.path("state/sessions")).map_or(true, |mut list| list.next().is_none()),
        "{request}: a session was made"
    );
}

#[test]
fn a_script_that_misbehaves_gets_an_ordinary_result() {
    let scene = Scene::new();
    for command in [
        "exit 1",
        "head -c 1M /dev/zero",
        "(sleep 20 &)",
        "sleep 20 & disown",
        "ln -s / out/l; mkfifo out/f",
        "kill -9 $$",
        "no-such-command",
        ")",
    ] {
        let answer = scene.ask(json!({"command": command, "timeout": 20})).go().reported();
        assert!(
            answer.finished.wall < std::time::Duration::from_secs(5),
            "{command}: {:?}",
            answer.finished.wall
        );
    }
}

#[test]
fn for_people_a_refusal_is_one_message_on_stderr() {
    let scene = Scene::new();
    let answer = scene
        .tell(&["run", "probe", "--cwd", "../..", "--", "echo it ran"])
        .go();
    assert_eq!(answer.code, Some(125));
    assert!(answer.finished.stdout.is_empty(), "{}", answer.told());
    let said = String::from_utf8(answer.finished.stderr.clone()).unwrap();
    assert!(
        said.contains("cwd") && said.contains("path_escape") || said.contains("cwd") && said.contains(".."),
        "{said}"
    );
}
