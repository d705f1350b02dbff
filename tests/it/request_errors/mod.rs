//! An invalid request gets an error before anything runs, and the error names the field.

mod command;
mod inputs;
mod limits;
mod shape;

use serde_json::{Value, json};

use crate::harness::{Fixture, assert_within};

/// Checks that a request is refused with this code and field, and that nothing ran.
fn assert_request_refused(fixture: &Fixture, request: Value, code: &str, field: &str) {
    let answer = fixture.request(request.clone()).allow_host_inputs().run();
    assert_eq!(
        answer.expect_refusal(),
        (code, Some(field)),
        "{request}: {}",
        answer.describe()
    );
    assert_eq!(answer.code, Some(125), "{request}");
    assert!(answer["error"]["hint"].as_str().is_none_or(|hint| !hint.is_empty()));
    assert!(
        std::fs::read_dir(fixture.path("state/sessions")).map_or(true, |mut list| list.next().is_none()),
        "{request}: a session was created"
    );
}

#[test]
fn a_misbehaving_script_gets_an_ordinary_report() {
    let fixture = Fixture::new();
    for command in [
        "exit 1",
        "head -c 1M /dev/zero",
        "(sleep 300 &)",
        "sleep 300 & disown",
        "ln -s / out/l; mkfifo out/f",
        "kill -9 $$",
        "no-such-command",
        ")",
    ] {
        let answer = fixture
            .request(json!({"command": command, "timeout": 200}))
            .run()
            .expect_report();
        assert_within(answer.process.wall, std::time::Duration::from_secs(5), command);
    }
}

#[test]
fn without_json_a_refusal_is_one_message_on_stderr() {
    let fixture = Fixture::new();
    let answer = fixture
        .command(&["run", "probe", "--cwd", "../..", "--", "echo it ran"])
        .run();
    assert_eq!(answer.code, Some(125));
    assert!(answer.process.stdout.is_empty(), "{}", answer.describe());
    let stderr = String::from_utf8(answer.process.stderr.clone()).unwrap();
    assert!(
        stderr.contains("cwd") && stderr.contains("path_escape") || stderr.contains("cwd") && stderr.contains(".."),
        "{stderr}"
    );
}
