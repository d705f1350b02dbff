//! Bad input gets an error before anything runs, and the error names the field.

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
fn unknown_keys_are_named() {
    let scene = Scene::new();
    refused(&scene, json!({"comand": "echo it ran"}), "invalid_request", "comand");
    refused(
        &scene,
        json!({"command": "echo it ran", "outputs": {"glob": []}}),
        "invalid_request",
        "outputs.glob",
    );
    refused(
        &scene,
        json!({"command": "echo it ran", "inputs": [{"from": "skill://probe/SKILL.md", "dst": "x"}]}),
        "invalid_request",
        "inputs[0].dst",
    );
    refused(
        &scene,
        json!({"command": "echo it ran", "Timeout": 1}),
        "invalid_request",
        "Timeout",
    );
    let answer = scene.ask(json!({"comand": "echo it ran"})).go();
    assert!(
        answer["error"]["message"].as_str().unwrap().contains("comand"),
        "{}",
        answer.told()
    );
}

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
fn wrong_types_are_named() {
    let scene = Scene::new();
    for (request, field) in [
        (json!({"command": 7}), "command"),
        (json!({"command": ["echo", "it ran"]}), "command"),
        (json!({"argv": "echo it ran"}), "argv"),
        (json!({"argv": ["echo", 1]}), "argv[1]"),
        (json!({"command": "echo it ran", "timeout": "soon"}), "timeout"),
        (json!({"command": "echo it ran", "env": ["A=1"]}), "env"),
        (json!({"command": "echo it ran", "env": {"A": 1}}), "env.A"),
        (
            json!({"command": "echo it ran", "output_files": "out/*"}),
            "output_files",
        ),
        (json!({"command": "echo it ran", "inputs": {"from": "x"}}), "inputs"),
        (
            json!({"command": "echo it ran", "inputs": [["skill://probe/SKILL.md"]]}),
            "inputs[0]",
        ),
        (json!({"command": "echo it ran", "outputs": [["out/*"]]}), "outputs"),
        (
            json!({"command": "echo it ran", "inputs": [{"to": "work/x"}]}),
            "inputs[0].from",
        ),
        (
            json!({"command": "echo it ran", "inputs": [{"from": "skill://probe/SKILL.md", "mode": "move"}]}),
            "inputs[0].mode",
        ),
        (
            json!({"command": "echo it ran", "outputs": {"max_files": -1}}),
            "outputs.max_files",
        ),
        (
            json!({"command": "echo it ran", "outputs": {"max_files": 1.5}}),
            "outputs.max_files",
        ),
        (
            json!({"command": "echo it ran", "save_as_artifacts": "yes"}),
            "save_as_artifacts",
        ),
        (json!({"command": "echo it ran", "executor": "cloud"}), "executor"),
    ] {
        refused(&scene, request, "invalid_request", field);
    }
}

#[test]
fn text_that_is_no_request_is_refused() {
    let scene = Scene::new();
    for text in [
        "",
        "{",
        "[]",
        "null",
        "\"run\"",
        "{\"skill\": \"probe\", \"command\": \"echo it ran\"} trailing",
        "{\"skill\": \"probe\", \"command\": \"echo it ran\"} {\"skill\": \"probe\", \"command\": \"true\"}",
        "[\"probe\", \"echo it ran\"]",
        "{\"skill\": \"probe\", \"command\": \"echo it ran\", \"env\": {\"A\": \"1\", \"A\": \"2\"}}",
        "{\"skill\": \"probe\", \"skill\": \"probe\", \"command\": \"echo it ran\"}",
        "\u{feff}nonsense",
    ] {
        let answer = scene.tell(&["run", "--json", "--request", "-"]).stdin(text).go();
        assert_eq!(
            (answer.refused().0, answer.code),
            ("invalid_request", Some(125)),
            "{text:?}: {}",
            answer.told()
        );
        let field = &answer["error"]["field"];
        assert!(*field != "." && *field != "?", "{text:?}: {field}");
    }
    let bytes = b"{\"skill\": \"probe\", \"command\": \"echo \xff\"}".to_vec();
    let answer = scene.tell(&["run", "--json", "--request", "-"]).stdin(bytes).go();
    assert_eq!((answer.refused().0, answer.code), ("invalid_request", Some(125)));
    let answer = scene
        .tell(&["run", "--json", "--request", "/nonexistent/request.json"])
        .go();
    assert_eq!(answer.code, Some(125), "{}", answer.told());
}

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
fn limits_of_nothing_or_too_much_are_refused() {
    let scene = Scene::new();
    for timeout in [json!(0), json!(-1), json!(-0.001)] {
        refused(
            &scene,
            json!({"command": "echo it ran", "timeout": timeout}),
            "invalid_request",
            "timeout",
        );
    }
    refused(
        &scene,
        json!({"command": "echo it ran", "timeout": 3600.5}),
        "limit_exceeded",
        "timeout",
    );
    refused(
        &scene,
        json!({"command": "echo it ran", "timeout": 1e300}),
        "limit_exceeded",
        "timeout",
    );
    refused(
        &scene,
        json!({"command": "echo it ran", "timeout": 601, "profile": "strict"}),
        "limit_exceeded",
        "timeout",
    );
    for key in ["max_files", "max_file_bytes", "max_total_bytes"] {
        refused(
            &scene,
            json!({"command": "echo it ran", "outputs": {"globs": ["out/*"], key: 0}}),
            "invalid_request",
            &format!("outputs.{key}"),
        );
    }
    refused(
        &scene,
        json!({"command": "echo it ran", "outputs": {"globs": ["out/*"], "max_files": 1_000_000_000}}),
        "limit_exceeded",
        "outputs.max_files",
    );
    for timeout in ["0", "-1", "soon", "3601"] {
        let answer = scene
            .tell(&[
                "run",
                "probe",
                "--json",
                &format!("--timeout={timeout}"),
                "--",
                "echo it ran",
            ])
            .go();
        assert_eq!(answer.code, Some(125), "{timeout}: {}", answer.told());
    }
}

#[test]
fn what_cannot_be_saved_is_refused_before_it_is_made() {
    let scene = Scene::new();
    for (outputs, field) in [
        (json!({"outputs": {"save": true}}), "outputs.save"),
        (json!({"save_as_artifacts": true}), "save_as_artifacts"),
        (
            json!({"outputs": {"globs": ["out/*"], "save": true, "name_template": "../"}}),
            "outputs.name_template",
        ),
        (
            json!({"output_files": ["out/*"], "save_as_artifacts": true, "artifact_prefix": "/abs/"}),
            "artifact_prefix",
        ),
    ] {
        let mut request = outputs;
        request["command"] = json!("echo it ran");
        refused(&scene, request, "invalid_request", field);
    }
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
