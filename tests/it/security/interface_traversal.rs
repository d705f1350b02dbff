//! 3.2: paths, names, globs and words that a caller passes in.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::time::Duration;

use serde_json::json;

use crate::lab::{Scene, tree_digest};

/// Leaves a trace on the host-visible report when it runs: a refused request must not get that far.
const TRACE: &str = "echo it ran";

#[test]
pub fn h017_destinations_that_leave_the_workspace_are_refused() {
    let scene = Scene::new();
    let source = format!("host://{}", scene.text("host/canary.txt"));
    for to in [
        "../../x",
        "/abs/x",
        "a/../../x",
        "a//../..//x",
        "work/a/..",
        "/workspace/../x",
        "work/../../etc/x",
        "..",
        "/",
    ] {
        let request = json!({"command": TRACE, "inputs": [{"from": source, "to": to}]});
        let answer = scene.ask(request).host_allowed().go();
        let (code, field) = answer.refused();
        assert!(matches!(code, "path_escape" | "invalid_request"), "{to}: {code}");
        assert_eq!((field, answer.code), (Some("inputs[0].to"), Some(125)), "{to}");
        assert!(!answer.mentions("it ran"));
    }
    // The same request with a destination inside goes through: the refusals above are about the destination.
    let request = json!({"command": "cat work/a/x", "inputs": [{"from": source, "to": "work/a/x"}]});
    let answer = scene.ask(request).host_allowed().go().reported();
    assert_eq!(answer.stdout().trim(), scene.canary());
}

#[test]
pub fn h018_a_link_that_the_skill_ships_leads_no_input_out() {
    let scene = Scene::new();
    let skill = scene.skill("linking", &[]);
    symlink("/", skill.join("root")).unwrap();
    symlink(scene.path("host"), skill.join("host")).unwrap();
    let before = tree_digest(&scene.path("host"));
    let source = format!("host://{}", scene.text("host/canary.txt"));
    for to in [
        "skills/linking/root/x",
        "skills/linking/host/x",
        "root/x",
        "$SKILLS_DIR/linking/host/x",
    ] {
        let request = json!({"skill": "linking", "command": "true", "inputs": [{"from": source, "to": to}]});
        let answer = scene.ask(request).host_allowed().go();
        assert_eq!(answer.refused().1, Some("inputs[0].to"), "{to}: {}", answer.told());
    }
    assert_eq!(tree_digest(&scene.path("host")), before);
    // Reading through the link stays inside the box, where the host's directory does not exist.
    let request = json!({"skill": "linking", "command": "cat host/canary.txt; ls root/"});
    let answer = scene.ask(request).go();
    assert!(!answer.mentions(scene.canary()), "{}", answer.told());
}

#[test]
pub fn h019_destinations_that_are_taken_are_refused() {
    let scene = Scene::new();
    let source = format!("host://{}", scene.text("host/canary.txt"));
    let one = |to: &str| json!([{"from": source, "to": to}]);
    for (inputs, field) in [
        (one("skills/probe/scripts/argv.py"), "inputs[0].to"),
        (one("skills/probe/SKILL.md"), "inputs[0].to"),
        (one("work"), "inputs[0].to"),
        (one("out"), "inputs[0].to"),
        (one("work/inputs"), "inputs[0].to"),
        (
            json!([{"from": source, "to": "work/a"}, {"from": source, "to": "work/a"}]),
            "inputs[1].to",
        ),
        (
            json!([{"from": source, "to": "work/a"}, {"from": source, "to": "work/a/b"}]),
            "inputs[1].to",
        ),
        (
            json!([{"from": source}, {"from": source, "to": "inputs/canary.txt"}]),
            "inputs[1].to",
        ),
    ] {
        let answer = scene
            .ask(json!({"command": TRACE, "inputs": inputs}))
            .host_allowed()
            .go();
        assert_eq!(answer.refused().1, Some(field), "{inputs}: {}", answer.told());
        assert!(!answer.mentions("it ran"));
    }
}

#[test]
pub fn h020_strange_names_are_kept_byte_for_byte_or_refused() {
    let scene = Scene::new();
    let long = "n".repeat(255);
    let too_long = "n".repeat(256);
    let deep = "d/".repeat(2040) + "x";
    let list = "find /workspace/work -type f -print0 | od -An -v -tx1 | tr -d ' \\n'";
    let source = format!("host://{}", scene.text("host/canary.txt"));
    for name in [
        "a\nb",
        "a\rb",
        "a\tb",
        "a\u{7f}b",
        "a\u{1b}[31mb",
        "a b",
        "a\u{202e}b",
        "é",
        "-rf",
        "*",
        &long,
        &too_long,
        &deep,
        "a\0b",
    ] {
        let request = json!({"command": list, "inputs": [{"from": source, "to": format!("work/in/{name}")}]});
        let answer = scene.ask(request).host_allowed().go();
        if answer.json().get("error").is_some() {
            assert_eq!(answer.refused().1, Some("inputs[0].to"), "{name:?}: {}", answer.told());
            assert_eq!(answer.code, Some(125));
        } else {
            let answer = answer.reported();
            let hex: String = format!("/workspace/work/in/{name}\0")
                .bytes()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            assert_eq!(answer.stdout().lines().collect::<Vec<_>>(), [hex], "{name:?}");
        }
    }
    // The same the other way: what a script makes comes back under its own name, or is named among the refused.
    let names = [
        "a\\nb",
        "a\\x7fb",
        "a\\x1b[31mb",
        "\\xc3\\xa9",
        "-rf",
        "a b",
        "back\\\\slash",
    ];
    let make: String = names.iter().map(|name| format!("printf x > out/$'{name}'\n")).collect();
    let request =
        json!({"command": format!("cd /workspace\n{make}printf x > out/$'bad\\xff'"), "output_files": ["out/*"]});
    let answer = scene.ask(request).go().reported();
    let mut expected = vec![
        "out/a\nb",
        "out/a\u{7f}b",
        "out/a\u{1b}[31mb",
        "out/é",
        "out/-rf",
        "out/a b",
        "out/back\\slash",
    ];
    expected.sort_unstable();
    let mut outputs = answer.outputs();
    outputs.sort_unstable();
    assert_eq!(outputs, expected, "{}", answer.told());
    assert_eq!(
        answer.refused_outputs().len(),
        1,
        "a name that is no text is refused by name: {}",
        answer.told()
    );
    // A name that is no text cannot even be asked for in JSON; on the command line it can.
    let file = scene.host_file("plain", "x");
    let mut input = std::ffi::OsString::from("host://");
    input.push(file);
    input.push(OsStr::from_bytes(b"=work/bad\xff"));
    let ask = scene
        .tell(&["run", "probe", "--json"])
        .word("--input", &input)
        .host_allowed();
    let answer = ask.with(&["--", list]).go();
    // Usage says no at once; nothing was run under another name.
    if answer.code != Some(2) && answer.json().get("error").is_none() {
        assert_eq!(
            answer.reported().stdout().trim(),
            "2f776f726b73706163652f776f726b2f626164ff00"
        );
    }
}

#[test]
pub fn h021_words_with_a_dash_are_data() {
    let scene = Scene::new();
    let words = [
        "--help",
        "-rf",
        "--config=/etc/x",
        "--json",
        "--",
        "-",
        "--skills",
        "-v",
    ];
    let expected = serde_json::to_string(&words).unwrap().replace(',', ", ");
    let control = scene.control("argv.py", &words);
    assert_eq!(control, expected);
    let request = json!({"script": "scripts/argv.py", "args": words});
    assert_eq!(scene.ask(request).go().word(), expected);
    let mut line = vec!["run", "probe", "--json", "--script", "scripts/argv.py", "--"];
    line.extend(words);
    assert_eq!(scene.tell(&line).go().word(), expected);
    let mut line = vec!["run", "probe", "--json", "--", "python3", "scripts/argv.py"];
    line.extend(words);
    assert_eq!(scene.tell(&line).go().word(), expected);
    // Names with a dash, in and out.
    let source = format!("host://{}", scene.text("host/canary.txt"));
    let request = json!({
        "command": "cp -- work/inputs/-rf out/--help && ls -- out/",
        "inputs": [{"from": source, "to": "work/inputs/-rf"}],
        "output_files": ["out/--help", "out/-*"],
    });
    let answer = scene.ask(request).host_allowed().go().reported();
    assert_eq!(answer.outputs(), ["out/--help"], "{}", answer.told());
}

#[test]
pub fn h022_no_shell_sees_the_arguments() {
    let scene = Scene::new();
    let words = [
        "$(id)",
        "`id`",
        "a;b",
        "a\nb",
        "'",
        "\"",
        "\\",
        "$HOME",
        "*",
        "a b",
        "",
        "~",
        "&",
        "|",
        "<x>",
        "{a,b}",
        "é\u{1b}[0m",
    ];
    let printed =
        |answer: crate::lab::Answer| -> Vec<String> { serde_json::from_str(answer.reported().stdout()).unwrap() };
    assert_eq!(
        printed(scene.ask(json!({"script": "scripts/argv.py", "args": words})).go()),
        words
    );
    let argv: Vec<&str> = ["python3", "scripts/argv.py"].into_iter().chain(words).collect();
    assert_eq!(printed(scene.ask(json!({"argv": argv})).go()), words);
    let line: Vec<&str> = ["run", "probe", "--json", "--"].into_iter().chain(argv).collect();
    assert_eq!(printed(scene.tell(&line).go()), words);
    // One word is a shell command line: there, and only there, the shell is asked.
    assert_eq!(scene.sh("echo $(echo shell)").stdout(), "shell\n");
}

#[test]
pub fn h023_globs_stay_inside_and_stay_fast() {
    let scene = Scene::new();
    let make = "mkdir -p out/a/b; for f in out/x.txt out/a/y.txt out/a/b/z.txt out/.hidden; do echo $f > $f; done";
    let collect = |glob: &str| {
        scene
            .ask(json!({"command": make, "output_files": [glob], "timeout": 20}))
            .within(Duration::from_secs(20))
            .go()
    };
    for glob in [
        "../*",
        "/etc/*",
        "out/../../etc/*",
        "{..,out}/*",
        "out/{../..,a}/*",
        "/**",
        "$SKILLS_DIR/../../etc/*",
    ] {
        let answer = collect(glob);
        let (code, field) = answer.refused();
        assert_eq!((code, field), ("path_escape", Some("output_files[0]")), "{glob}");
    }
    for glob in ["out/[", "out/{a", ""] {
        assert_eq!(
            collect(glob).refused(),
            ("invalid_request", Some("output_files[0]")),
            "{glob:?}"
        );
    }
    for (glob, expected) in [
        (
            "out/**",
            vec!["out/.hidden", "out/a/b/z.txt", "out/a/y.txt", "out/x.txt"],
        ),
        ("out/*.txt", vec!["out/x.txt"]),
        ("out/{x,a/y}.txt", vec!["out/a/y.txt", "out/x.txt"]),
        ("**/z.txt", vec!["out/a/b/z.txt"]),
        ("$OUTPUT_DIR/x.txt", vec!["out/x.txt"]),
    ] {
        let answer = collect(glob).reported();
        let mut outputs = answer.outputs();
        outputs.sort_unstable();
        assert_eq!(outputs, expected, "{glob}");
    }
    // Patterns that make a backtracking matcher explode: refused, or answered at once.
    for glob in [
        "*".repeat(10_000),
        "*a".repeat(400),
        "out/".to_owned() + &"**/".repeat(200) + "x",
        "{a,".repeat(200),
    ] {
        let answer = collect(&glob);
        assert!(
            answer.finished.wall < Duration::from_secs(5),
            "{} took {:?}",
            &glob[..10],
            answer.finished.wall
        );
        assert!(answer.json().get("error").is_none() || answer.refused().1 == Some("output_files[0]"));
    }
}

#[test]
fn h024_collection_begins_when_everything_is_dead() {
    let scene = Scene::new();
    let request = json!({
        "command": "python3 scripts/daemon.py growing out/growing.txt",
        "outputs": {"globs": ["out/*"], "max_file_bytes": 1_000_000},
        "timeout": 20,
    });
    for _ in 0..3 {
        let answer = scene.ask(request.clone()).go().reported();
        let file = answer.output("out/growing.txt");
        // A writer that lived on would make the size, the content and the digest differ.
        let content = file["content"].as_str().unwrap();
        assert_eq!(file["size_bytes"].as_u64().unwrap(), content.len() as u64);
        assert!(content.replace("more\n", "").len() < 5, "torn content");
    }
}

#[test]
pub fn h025_a_working_directory_stays_inside() {
    let scene = Scene::new();
    let skill = scene.skill("moving", &[("file.txt", "x"), ("sub/x", "x")]);
    symlink("/", skill.join("root")).unwrap();
    symlink("/etc", skill.join("etc")).unwrap();
    for cwd in [
        "..",
        "../..",
        "/etc",
        "/",
        "/proc/self/fd/3",
        "$WORKSPACE_DIR/../..",
        "sub/../../..",
        "$HOME",
        "$OUTPUT_DIRX",
        "/workspace/../etc",
    ] {
        let answer = scene.ask(json!({"skill": "moving", "command": TRACE, "cwd": cwd})).go();
        let (code, field) = answer.refused();
        assert!(matches!(code, "path_escape" | "invalid_request"), "{cwd}: {code}");
        assert_eq!((field, answer.code), (Some("cwd"), Some(125)), "{cwd}");
    }
    for cwd in ["missing", "file.txt", "root", "etc", "root/etc"] {
        let answer = scene
            .ask(json!({"skill": "moving", "command": "pwd -P; ls", "cwd": cwd}))
            .go();
        if answer.json().get("error").is_some() {
            assert_eq!(answer.refused().1, Some("cwd"), "{cwd}: {}", answer.told());
        } else {
            let answer = answer.reported();
            assert!(!answer.stdout().contains("shadow"), "{cwd}: {}", answer.told());
        }
    }
    let answer = scene
        .ask(json!({"skill": "moving", "command": "pwd", "cwd": "sub"}))
        .go()
        .reported();
    assert_eq!(answer.stdout(), "/workspace/skills/moving/sub\n");
}

#[test]
pub fn h026_variables_reach_the_script_and_nobody_else() {
    let scene = Scene::new();
    for name in ["", "A=B", "1A", "A B", "A\nB", "A;B", "é", "A\0B"] {
        let answer = scene.ask(json!({"command": TRACE, "env": {name: "x"}})).go();
        let (code, field) = answer.refused();
        assert_eq!((code, answer.code), ("invalid_request", Some(125)), "{name:?}");
        assert!(
            field.is_some_and(|field| field.starts_with("env")),
            "{name:?}: {field:?}"
        );
    }
    // Variables that steer loaders and shells: ours must not be steered by them.
    let hostile = json!({
        "LD_PRELOAD": "/workspace/skills/probe/none.so", "BASH_ENV": "/workspace/skills/probe/SKILL.md",
        "PYTHONPATH": "/workspace/work", "IFS": "x", "LD_LIBRARY_PATH": "/workspace/work", "LD_AUDIT": "/x",
        "ENV": "/x", "PROMPT_COMMAND": "exit 9", "SHELLOPTS": "noexec", "MALLOC_CHECK_": "3",
    });
    let answer = scene
        .ask(json!({"argv": ["env", "-0"], "env": hostile}))
        .go()
        .reported();
    assert_eq!(answer["exit_code"], 0, "{}", answer.told());
    for (name, value) in hostile.as_object().unwrap() {
        let entry = format!("{name}={}", value.as_str().unwrap());
        assert!(
            answer.stdout().split('\0').any(|line| line == entry),
            "{entry} did not arrive: {}",
            answer.told()
        );
    }
    // A megabyte is refused or arrives whole.
    let huge = "v".repeat(1 << 20);
    let answer = scene
        .ask(json!({"command": "echo ${#HUGE}", "env": {"HUGE": huge}}))
        .go();
    if answer.json().get("error").is_some() {
        assert_eq!(answer.refused(), ("invalid_request", Some("env.HUGE")));
    } else {
        assert_eq!(answer.reported().stdout().trim(), "1048576");
    }
    let answer = scene
        .ask(json!({"command": "echo ${#LARGE}", "env": {"LARGE": "v".repeat(100_000)}}))
        .go()
        .reported();
    assert_eq!(answer.stdout().trim(), "100000");
}

#[test]
fn h027_a_strange_interpreter_is_an_ordinary_error() {
    let scene = Scene::new();
    let host = scene.host_file("interpreter", "#!/bin/sh\necho host interpreter\n");
    let long = format!("#!/{}\n", "x".repeat(300));
    let on_host = format!("#!{}\n", host.display());
    let scripts = [
        ("on-host.sh", on_host.as_str()),
        ("split.py", "#!/usr/bin/env -S python3 -c 'print(1)'\n"),
        ("loop", "#!/workspace/skills/shebangs/scripts/loop\n"),
        ("long", &long),
        ("missing", "#!/nonexistent/interpreter\n"),
        ("directory", "#!/usr\n"),
        ("empty-line", "#!\n"),
    ];
    let files: Vec<(String, &str)> = scripts
        .iter()
        .map(|(name, text)| (format!("scripts/{name}"), *text))
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), *text)).collect();
    let dir = scene.skill("shebangs", &files);
    for (name, _) in scripts {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(dir.join("scripts").join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
        for request in [
            json!({"skill": "shebangs", "script": format!("scripts/{name}"), "timeout": 10}),
            json!({"skill": "shebangs", "command": format!("scripts/{name}"), "timeout": 10}),
            json!({"skill": "shebangs", "argv": [format!("/workspace/skills/shebangs/scripts/{name}")], "timeout": 10}),
        ] {
            let answer = scene.ask(request.clone()).go();
            if answer.json().get("error").is_some() {
                assert_eq!(
                    answer.refused(),
                    ("invalid_request", Some("script")),
                    "{request}: {}",
                    answer.told()
                );
                continue;
            }
            let answer = answer.reported();
            assert_eq!(answer["ended_by"], "exit", "{request}: {}", answer.told());
            assert!(!answer.stdout().contains("host interpreter"), "{request}");
        }
    }
}
