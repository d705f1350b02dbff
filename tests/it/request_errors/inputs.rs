//! Inputs that lead nowhere, or further than they may.

use serde_json::{Value, json};

use super::refused;
use crate::lab::Scene;

#[test]
fn content_that_is_none_and_has_no_name_is_told() {
    let scene = Scene::new();
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
        refused(&scene, request, "invalid_request", field);
    }
}

#[test]
fn paths_that_escape_are_refused() {
    let scene = Scene::new();
    let from = format!("host://{}", scene.text("host/canary.txt"));
    for to in ["../x", "work/../../x", "/etc/x", "skills/probe/SKILL.md"] {
        refused(
            &scene,
            json!({"command": "echo it ran", "inputs": [{"from": from, "to": to}]}),
            "path_escape",
            "inputs[0].to",
        );
    }
    for to in ["", "work", "elsewhere/x", "$HOME/x", "work/\u{0}"] {
        refused(
            &scene,
            json!({"command": "echo it ran", "inputs": [{"from": from, "to": to}]}),
            "invalid_request",
            "inputs[0].to",
        );
    }
    for glob in ["../*", "/etc/*", "out/../../x"] {
        refused(
            &scene,
            json!({"command": "echo it ran", "output_files": ["out/*", glob]}),
            "path_escape",
            "output_files[1]",
        );
        refused(
            &scene,
            json!({"command": "echo it ran", "outputs": {"globs": [glob]}}),
            "path_escape",
            "outputs.globs[0]",
        );
    }
    for cwd in ["..", "/etc", "$WORK_DIR/../.."] {
        refused(
            &scene,
            json!({"command": "echo it ran", "cwd": cwd}),
            "path_escape",
            "cwd",
        );
    }
}

#[test]
fn inputs_that_collide_or_are_missing_are_refused() {
    let scene = Scene::new();
    let from = format!("host://{}", scene.text("host/canary.txt"));
    let both = |a: &str, b: &str| json!({"command": "echo it ran", "inputs": [{"from": from, "to": a}, {"from": from, "to": b}]});
    refused(&scene, both("work/a", "work/a"), "invalid_request", "inputs[1].to");
    refused(&scene, both("work/a", "$WORK_DIR/a"), "invalid_request", "inputs[1].to");
    refused(&scene, both("work/a", "work/a/b"), "invalid_request", "inputs[1].to");
    refused(
        &scene,
        both("inputs/a", "work/inputs/a"),
        "invalid_request",
        "inputs[1].to",
    );
    let one = |from: &str| json!({"command": "echo it ran", "inputs": [{"from": "skill://probe/SKILL.md"}, {"from": from, "to": "work/x"}]});
    let missing = format!("host://{}", scene.text("host/none"));
    refused(&scene, one(&missing), "input_missing", "inputs[1].from");
    refused(&scene, one("skill://probe/none"), "input_missing", "inputs[1].from");
    refused(&scene, one("workspace://work/none"), "input_missing", "inputs[1].from");
    refused(&scene, one("artifact://none"), "artifact_missing", "inputs[1].from");
    refused(&scene, one("artifact://none@3"), "artifact_missing", "inputs[1].from");
    refused(&scene, one("skill://none/x"), "unknown_skill", "inputs[1].from");
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
        refused(&scene, one(from), "invalid_request", "inputs[1].from");
    }
    refused(
        &scene,
        json!({"command": "echo it ran", "inputs": [{"from": from, "pin": true}]}),
        "invalid_request",
        "inputs[0].pin",
    );
}

#[test]
fn inputs_that_do_not_fit_are_named() {
    let scene = Scene::new();
    let large = scene.path("host/large");
    std::fs::File::create(&large).unwrap().set_len(600 << 20).unwrap();
    let request = json!({"command": "echo it ran", "inputs": [{"from": format!("host://{}", large.display())}]});
    refused(&scene, request, "limit_exceeded", "inputs[0].from");
}

#[test]
fn host_files_outside_the_allowed_directories_are_refused() {
    let scene = Scene::new();
    let inside = scene.host_file("inside.txt", "inside");
    std::os::unix::fs::symlink(scene.path("home/.netrc"), scene.path("host/link.txt")).unwrap();
    std::os::unix::fs::symlink(scene.path("home"), scene.path("host/dir")).unwrap();
    std::fs::create_dir(scene.path("host-other")).unwrap();
    std::fs::write(scene.path("host-other/x"), "x").unwrap();
    let one =
        |path: String| json!({"command": "cat work/x", "inputs": [{"from": format!("host://{path}"), "to": "work/x"}]});
    for path in ["home/.netrc", "state/canary", "host-other/x"] {
        let answer = scene.ask(one(scene.text(path))).host_allowed().go();
        assert_eq!(
            (answer.refused(), answer.code),
            (("host_not_allowed", Some("inputs[0].from")), Some(125)),
            "{path}: {}",
            answer.told()
        );
    }
    for path in ["host/link.txt", "host/dir/.netrc", "host/../home/.netrc", "host/dir"] {
        let answer = scene.ask(one(scene.text(path))).host_allowed().go();
        assert_eq!(answer.refused().1, Some("inputs[0].from"), "{path}: {}", answer.told());
        assert!(!answer.mentions(scene.canary()), "{path}");
    }
    refused_without_permission(&scene, one(inside.to_str().unwrap().to_owned()));
    let answer = scene
        .ask(one(inside.to_str().unwrap().to_owned()))
        .host_allowed()
        .go()
        .reported();
    assert_eq!(answer.stdout(), "inside");
}

fn refused_without_permission(scene: &Scene, request: Value) {
    let answer = scene.ask(request).go();
    assert_eq!(
        answer.refused(),
        ("host_not_allowed", Some("inputs[0].from")),
        "{}",
        answer.told()
    );
}

/// A view that cannot be written to does not keep anybody from talking to a socket in it.
#[test]
fn directories_with_sockets_are_not_linked() {
    let scene = Scene::new();
    let place = scene.path("host/with-socket");
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
        scene
            .ask(input(mode))
            .host_allowed()
            .go()
            .reported()
            .stdout()
            .to_owned()
    };
    assert_eq!(runs("link"), "read me", "the control: without a socket it is shown");
    let _listener = std::os::unix::net::UnixListener::bind(place.join("deep/sock")).unwrap();
    refused(&scene, input("link"), "invalid_request", "inputs[0].from");
    assert_eq!(runs("copy"), "read me", "a copy leaves it out");
}
