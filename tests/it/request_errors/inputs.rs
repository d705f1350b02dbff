//! Errors about inputs: missing, colliding, or outside the allowed directories.

use std::io::Read;
use std::path::Path;

use serde_json::{Value, json};

use super::assert_request_refused;
use crate::harness::Fixture;

#[test]
fn invalid_or_unnamed_data_inputs_are_refused() {
    let fixture = Fixture::new();
    for (input, field) in [
        (json!({"from": "data:;base64,&&&", "to": "inputs/x"}), "inputs[0].from"),
        (json!({"from": "data:no comma", "to": "inputs/x"}), "inputs[0].from"),
        (json!({"from": "data:,content"}), "inputs[0].to"),
        (
            json!({"from": "data:,content", "to": "inputs/x", "pin": true}),
            "inputs[0].pin",
        ),
    ] {
        let request = json!({"command": "echo it ran", "inputs": [input]});
        assert_request_refused(&fixture, request, "invalid_request", field);
    }
}

#[test]
fn paths_that_escape_are_refused() {
    let fixture = Fixture::new();
    let from = format!("host://{}", fixture.path_str("host/canary.txt"));
    for to in ["../x", "work/../../x", "/etc/x", "skills/probe/SKILL.md"] {
        assert_request_refused(
            &fixture,
            json!({"command": "echo it ran", "inputs": [{"from": from, "to": to}]}),
            "path_escape",
            "inputs[0].to",
        );
    }
    for to in ["", "work", "elsewhere/x", "$HOME/x", "work/\u{0}"] {
        assert_request_refused(
            &fixture,
            json!({"command": "echo it ran", "inputs": [{"from": from, "to": to}]}),
            "invalid_request",
            "inputs[0].to",
        );
    }
    for glob in ["../*", "/etc/*", "out/../../x"] {
        assert_request_refused(
            &fixture,
            json!({"command": "echo it ran", "output_files": ["out/*", glob]}),
            "path_escape",
            "output_files[1]",
        );
        assert_request_refused(
            &fixture,
            json!({"command": "echo it ran", "outputs": {"globs": [glob]}}),
            "path_escape",
            "outputs.globs[0]",
        );
    }
    for cwd in ["..", "/etc", "$WORK_DIR/../.."] {
        assert_request_refused(
            &fixture,
            json!({"command": "echo it ran", "cwd": cwd}),
            "path_escape",
            "cwd",
        );
    }
}

#[test]
fn inputs_that_collide_or_are_missing_are_refused() {
    let fixture = Fixture::new();
    let from = format!("host://{}", fixture.path_str("host/canary.txt"));
    let both = |a: &str, b: &str| json!({"command": "echo it ran", "inputs": [{"from": from, "to": a}, {"from": from, "to": b}]});
    assert_request_refused(&fixture, both("work/a", "work/a"), "invalid_request", "inputs[1].to");
    assert_request_refused(
        &fixture,
        both("work/a", "$WORK_DIR/a"),
        "invalid_request",
        "inputs[1].to",
    );
    assert_request_refused(&fixture, both("work/a", "work/a/b"), "invalid_request", "inputs[1].to");
    assert_request_refused(
        &fixture,
        both("inputs/a", "work/inputs/a"),
        "invalid_request",
        "inputs[1].to",
    );
    let one = |from: &str| json!({"command": "echo it ran", "inputs": [{"from": "skill://probe/SKILL.md"}, {"from": from, "to": "work/x"}]});
    let missing = format!("host://{}", fixture.path_str("host/none"));
    assert_request_refused(&fixture, one(&missing), "input_missing", "inputs[1].from");
    assert_request_refused(&fixture, one("skill://probe/none"), "input_missing", "inputs[1].from");
    assert_request_refused(
        &fixture,
        one("workspace://work/none"),
        "input_missing",
        "inputs[1].from",
    );
    assert_request_refused(&fixture, one("artifact://none"), "artifact_missing", "inputs[1].from");
    assert_request_refused(&fixture, one("artifact://none@3"), "artifact_missing", "inputs[1].from");
    assert_request_refused(&fixture, one("skill://none/x"), "unknown_skill", "inputs[1].from");
    for from in [
        "",
        "notes.txt",
        "ftp://x/y",
        "https://example.org/x",
        "host://etc/hosts",
        "artifact://",
        "skill://",
        "host:///a\u{0}b",
    ] {
        assert_request_refused(&fixture, one(from), "invalid_request", "inputs[1].from");
    }
    assert_request_refused(
        &fixture,
        json!({"command": "echo it ran", "inputs": [{"from": from, "pin": true}]}),
        "invalid_request",
        "inputs[0].pin",
    );
}

#[test]
fn inputs_larger_than_the_workspace_are_refused() {
    let fixture = Fixture::new();
    let large = fixture.path("host/large");
    write_bytes(&large, 520 << 20);
    let request = json!({"command": "echo it ran", "inputs": [{"from": format!("host://{}", large.display())}]});
    assert_request_refused(&fixture, request, "limit_exceeded", "inputs[0].from");
}

/// A hole takes no space in the workspace.
#[test]
fn inputs_with_holes_take_the_space_of_their_data() {
    let fixture = Fixture::new();
    let sparse = fixture.path("host/sparse");
    std::fs::File::create(&sparse).unwrap().set_len(520 << 20).unwrap();
    let request = json!({"command": "stat -c %s work/inputs/sparse", "cwd": "$WORKSPACE_DIR", "inputs": [{"from": format!("host://{}", sparse.display())}]});
    let answer = fixture.request(request).allow_host_inputs().run().expect_report();
    assert_eq!(answer.stdout(), "545259520\n", "{}", answer.describe());
}

/// Writes a file without holes.
fn write_bytes(path: &Path, bytes: u64) {
    let mut file = std::fs::File::create(path).unwrap();
    std::io::copy(&mut std::io::repeat(b'x').take(bytes), &mut file).unwrap();
}

#[test]
fn host_files_outside_the_allowed_directories_are_refused() {
    let fixture = Fixture::new();
    let inside = fixture.add_host_file("inside.txt", "inside");
    std::os::unix::fs::symlink(fixture.path("home/.netrc"), fixture.path("host/link.txt")).unwrap();
    std::os::unix::fs::symlink(fixture.path("home"), fixture.path("host/dir")).unwrap();
    std::fs::create_dir(fixture.path("host-other")).unwrap();
    std::fs::write(fixture.path("host-other/x"), "x").unwrap();
    let one =
        |path: String| json!({"command": "cat work/x", "inputs": [{"from": format!("host://{path}"), "to": "work/x"}]});
    for path in ["home/.netrc", "state/canary", "host-other/x"] {
        let answer = fixture.request(one(fixture.path_str(path))).allow_host_inputs().run();
        assert_eq!(
            (answer.expect_refusal(), answer.code),
            (("host_not_allowed", Some("inputs[0].from")), Some(125)),
            "{path}: {}",
            answer.describe()
        );
    }
    for path in ["host/link.txt", "host/dir/.netrc", "host/../home/.netrc", "host/dir"] {
        let answer = fixture.request(one(fixture.path_str(path))).allow_host_inputs().run();
        assert_eq!(
            answer.expect_refusal().1,
            Some("inputs[0].from"),
            "{path}: {}",
            answer.describe()
        );
        assert!(!answer.mentions(fixture.canary()), "{path}");
    }
    refused_without_permission(&fixture, one(inside.to_str().unwrap().to_owned()));
    let answer = fixture
        .request(one(inside.to_str().unwrap().to_owned()))
        .allow_host_inputs()
        .run()
        .expect_report();
    assert_eq!(answer.stdout(), "inside");
}

fn refused_without_permission(fixture: &Fixture, request: Value) {
    let answer = fixture.request(request).run();
    assert_eq!(
        answer.expect_refusal(),
        ("host_not_allowed", Some("inputs[0].from")),
        "{}",
        answer.describe()
    );
}

/// A script can connect to a socket in a read-only mount.
#[test]
fn directories_with_sockets_are_not_linked() {
    let fixture = Fixture::new();
    let place = fixture.path("host/with-socket");
    std::fs::create_dir_all(place.join("deep")).unwrap();
    std::fs::write(place.join("file"), "read me").unwrap();
    let input = |mode: &str| {
        let from = format!("host://{}", place.display());
        json!({
            "command": "cat work/inputs/with-socket/file; ls work/inputs/with-socket/deep",
            "inputs": [{"from": from, "mode": mode}],
        })
    };
    let runs = |mode: &str| {
        fixture
            .request(input(mode))
            .allow_host_inputs()
            .run()
            .expect_report()
            .stdout()
            .to_owned()
    };
    assert_eq!(
        runs("link"),
        "read me",
        "the control: without a socket the directory is linked"
    );
    let _listener = std::os::unix::net::UnixListener::bind(place.join("deep/sock")).unwrap();
    assert_request_refused(&fixture, input("link"), "invalid_request", "inputs[0].from");
    assert_eq!(runs("copy"), "read me", "a copy does not contain the socket");
}
