//! 3.2: paths, names, globs and arguments that a caller passes in.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::time::Duration;

use serde_json::json;

use crate::harness::{Fixture, assert_within, tree_contents};

/// A command whose output shows that it ran: a refused request must not get that far.
const ECHO: &str = "echo it ran";

#[test]
pub fn h017_destinations_that_leave_the_workspace_are_refused() {
    let fixture = Fixture::new();
    let source = format!("host://{}", fixture.path_str("host/canary.txt"));
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
        let request = json!({"command": ECHO, "inputs": [{"from": source, "to": to}]});
        let answer = fixture.request(request).allow_host_inputs().run();
        let (code, field) = answer.expect_refusal();
        assert!(matches!(code, "path_escape" | "invalid_request"), "{to}: {code}");
        assert_eq!((field, answer.code), (Some("inputs[0].to"), Some(125)), "{to}");
        assert!(!answer.mentions("it ran"));
    }
    // The same request with a destination inside the workspace is accepted: the destination was the reason.
    let request = json!({"command": "cat work/a/x", "inputs": [{"from": source, "to": "work/a/x"}]});
    let answer = fixture.request(request).allow_host_inputs().run().expect_report();
    assert_eq!(answer.stdout().trim(), fixture.canary());
}

#[test]
pub fn h018_a_link_in_the_skill_is_not_followed_by_inputs() {
    let fixture = Fixture::new();
    let skill = fixture.add_skill("linking", &[]);
    symlink("/", skill.join("root")).unwrap();
    symlink(fixture.path("host"), skill.join("host")).unwrap();
    let before = tree_contents(&fixture.path("host"));
    let source = format!("host://{}", fixture.path_str("host/canary.txt"));
    for to in [
        "skills/linking/root/x",
        "skills/linking/host/x",
        "root/x",
        "$SKILLS_DIR/linking/host/x",
    ] {
        let request = json!({"skill": "linking", "command": "true", "inputs": [{"from": source, "to": to}]});
        let answer = fixture.request(request).allow_host_inputs().run();
        assert_eq!(
            answer.expect_refusal().1,
            Some("inputs[0].to"),
            "{to}: {}",
            answer.describe()
        );
    }
    assert_eq!(tree_contents(&fixture.path("host")), before);
    // Inside the sandbox the link leads nowhere: the directory of the host does not exist there.
    let request = json!({"skill": "linking", "command": "cat host/canary.txt; ls root/"});
    let answer = fixture.request(request).run();
    assert!(!answer.mentions(fixture.canary()), "{}", answer.describe());
}

#[test]
pub fn h019_occupied_destinations_are_refused() {
    let fixture = Fixture::new();
    let source = format!("host://{}", fixture.path_str("host/canary.txt"));
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
        let answer = fixture
            .request(json!({"command": ECHO, "inputs": inputs}))
            .allow_host_inputs()
            .run();
        assert_eq!(
            answer.expect_refusal().1,
            Some(field),
            "{inputs}: {}",
            answer.describe()
        );
        assert!(!answer.mentions("it ran"));
    }
}

#[test]
pub fn h020_unusual_names_are_kept_byte_for_byte_or_refused() {
    let fixture = Fixture::new();
    let long = "n".repeat(255);
    let too_long = "n".repeat(256);
    let deep = "d/".repeat(2040) + "x";
    let list = "find /workspace/work -type f -print0 | od -An -v -tx1 | tr -d ' \\n'";
    let source = format!("host://{}", fixture.path_str("host/canary.txt"));
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
        let answer = fixture.request(request).allow_host_inputs().run();
        if answer.is_refused() {
            assert_eq!(
                answer.expect_refusal().1,
                Some("inputs[0].to"),
                "{name:?}: {}",
                answer.describe()
            );
            assert_eq!(answer.code, Some(125));
        } else {
            let answer = answer.expect_report();
            let hex: String = format!("/workspace/work/in/{name}\0")
                .bytes()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            assert_eq!(answer.stdout().lines().collect::<Vec<_>>(), [hex], "{name:?}");
        }
    }
    // The same for outputs: a file is collected under its own name, or listed among the refused.
    let names = [
        "a\\nb",
        "a\\x7fb",
        "a\\x1b[31mb",
        "\\xc3\\xa9",
        "-rf",
        "a b",
        "back\\\\slash",
    ];
    let script: String = names.iter().map(|name| format!("printf x > out/$'{name}'\n")).collect();
    let request =
        json!({"command": format!("cd /workspace\n{script}printf x > out/$'bad\\xff'"), "output_files": ["out/*"]});
    let answer = fixture.request(request).run().expect_report();
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
    let mut outputs = answer.output_names();
    outputs.sort_unstable();
    assert_eq!(outputs, expected, "{}", answer.describe());
    assert_eq!(
        answer.refused_output_names().len(),
        1,
        "a name that is not UTF-8 is listed as refused: {}",
        answer.describe()
    );
    // JSON cannot contain a name that is not UTF-8; the command line can.
    let file = fixture.add_host_file("plain", "x");
    let mut input = std::ffi::OsString::from("host://");
    input.push(file);
    input.push(OsStr::from_bytes(b"=work/bad\xff"));
    let invocation = fixture
        .command(&["run", "probe", "--json"])
        .with_os_flag("--input", &input)
        .allow_host_inputs();
    let answer = invocation.with_args(&["--", list]).run();
    // The argument is refused, or the file has exactly this name.
    if answer.code != Some(2) && !answer.is_refused() {
        assert_eq!(
            answer.expect_report().stdout().trim(),
            "2f776f726b73706163652f776f726b2f626164ff00"
        );
    }
}

#[test]
pub fn h021_arguments_with_a_dash_are_data() {
    let fixture = Fixture::new();
    let args = [
        "--help",
        "-rf",
        "--config=/etc/x",
        "--json",
        "--",
        "-",
        "--skills",
        "-v",
    ];
    let expected = serde_json::to_string(&args).unwrap().replace(',', ", ");
    let control = fixture.control_probe("argv.py", &args);
    assert_eq!(control, expected);
    let request = json!({"script": "scripts/argv.py", "args": args});
    assert_eq!(fixture.request(request).run().expect_word(), expected);
    let mut line = vec!["run", "probe", "--json", "--script", "scripts/argv.py", "--"];
    line.extend(args);
    assert_eq!(fixture.command(&line).run().expect_word(), expected);
    let mut line = vec!["run", "probe", "--json", "--", "python3", "scripts/argv.py"];
    line.extend(args);
    assert_eq!(fixture.command(&line).run().expect_word(), expected);
    // Inputs and outputs whose names start with a dash.
    let source = format!("host://{}", fixture.path_str("host/canary.txt"));
    let request = json!({
        "command": "cp -- work/inputs/-rf out/--help && ls -- out/",
        "inputs": [{"from": source, "to": "work/inputs/-rf"}],
        "output_files": ["out/--help", "out/-*"],
    });
    let answer = fixture.request(request).allow_host_inputs().run().expect_report();
    assert_eq!(answer.output_names(), ["out/--help"], "{}", answer.describe());
}

#[test]
pub fn h022_arguments_do_not_pass_through_a_shell() {
    let fixture = Fixture::new();
    let args = [
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
    let printed = |answer: crate::harness::Answer| -> Vec<String> {
        serde_json::from_str(answer.expect_report().stdout()).unwrap()
    };
    assert_eq!(
        printed(
            fixture
                .request(json!({"script": "scripts/argv.py", "args": args}))
                .run()
        ),
        args
    );
    let argv: Vec<&str> = ["python3", "scripts/argv.py"].into_iter().chain(args).collect();
    assert_eq!(printed(fixture.request(json!({"argv": argv})).run()), args);
    let line: Vec<&str> = ["run", "probe", "--json", "--"].into_iter().chain(argv).collect();
    assert_eq!(printed(fixture.command(&line).run()), args);
    // A single argument is a shell command line.
    assert_eq!(fixture.run_shell("echo $(echo shell)").stdout(), "shell\n");
}

#[test]
pub fn h023_globs_stay_in_the_workspace_and_are_matched_quickly() {
    let fixture = Fixture::new();
    let create_files =
        "mkdir -p out/a/b; for f in out/x.txt out/a/y.txt out/a/b/z.txt out/.hidden; do echo $f > $f; done";
    let collect = |glob: &str| {
        fixture
            .request(json!({"command": create_files, "output_files": [glob], "timeout": 100}))
            .run()
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
        let (code, field) = answer.expect_refusal();
        assert_eq!((code, field), ("path_escape", Some("output_files[0]")), "{glob}");
    }
    for glob in ["out/[", "out/{a", ""] {
        assert_eq!(
            collect(glob).expect_refusal(),
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
        let answer = collect(glob).expect_report();
        let mut outputs = answer.output_names();
        outputs.sort_unstable();
        assert_eq!(outputs, expected, "{glob}");
    }
    // Patterns that take a backtracking matcher exponential time are refused or matched quickly.
    for glob in [
        "*".repeat(10_000),
        "*a".repeat(400),
        "out/".to_owned() + &"**/".repeat(200) + "x",
        "{a,".repeat(200),
    ] {
        let answer = collect(&glob);
        assert_within(answer.process.wall, Duration::from_secs(5), &glob[..10]);
        assert!(!answer.is_refused() || answer.expect_refusal().1 == Some("output_files[0]"));
    }
}

#[test]
fn h024_collection_starts_after_every_process_ended() {
    let fixture = Fixture::new();
    let request = json!({
        "command": "python3 scripts/daemon.py growing out/growing.txt",
        "outputs": {"globs": ["out/*"], "max_file_bytes": 1_000_000},
        "timeout": 100,
    });
    for _ in 0..3 {
        let answer = fixture.request(request.clone()).run().expect_report();
        let file = answer.output_file("out/growing.txt");
        // A writer that is still alive would make the size, the content and the digest differ.
        let content = file["content"].as_str().unwrap();
        assert_eq!(file["size_bytes"].as_u64().unwrap(), content.len() as u64);
        assert!(content.replace("more\n", "").len() < 5, "incomplete lines");
    }
}

#[test]
pub fn h025_a_working_directory_stays_in_the_workspace() {
    let fixture = Fixture::new();
    let skill = fixture.add_skill("moving", &[("file.txt", "x"), ("sub/x", "x")]);
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
        let answer = fixture
            .request(json!({"skill": "moving", "command": ECHO, "cwd": cwd}))
            .run();
        let (code, field) = answer.expect_refusal();
        assert!(matches!(code, "path_escape" | "invalid_request"), "{cwd}: {code}");
        assert_eq!((field, answer.code), (Some("cwd"), Some(125)), "{cwd}");
    }
    for cwd in ["missing", "file.txt", "root", "etc", "root/etc"] {
        let answer = fixture
            .request(json!({"skill": "moving", "command": "pwd -P; ls", "cwd": cwd}))
            .run();
        if answer.is_refused() {
            assert_eq!(answer.expect_refusal().1, Some("cwd"), "{cwd}: {}", answer.describe());
        } else {
            let answer = answer.expect_report();
            assert!(!answer.stdout().contains("shadow"), "{cwd}: {}", answer.describe());
        }
    }
    let answer = fixture
        .request(json!({"skill": "moving", "command": "pwd", "cwd": "sub"}))
        .run()
        .expect_report();
    assert_eq!(answer.stdout(), "/workspace/skills/moving/sub\n");
}

#[test]
pub fn h026_variables_reach_the_script_only() {
    let fixture = Fixture::new();
    for name in ["", "A=B", "1A", "A B", "A\nB", "A;B", "é", "A\0B"] {
        let answer = fixture.request(json!({"command": ECHO, "env": {name: "x"}})).run();
        let (code, field) = answer.expect_refusal();
        assert_eq!((code, answer.code), ("invalid_request", Some(125)), "{name:?}");
        assert!(
            field.is_some_and(|field| field.starts_with("env")),
            "{name:?}: {field:?}"
        );
    }
    // Variables that control loaders and shells must not affect those of skillbox.
    let hostile = json!({
        "LD_PRELOAD": "/workspace/skills/probe/none.so", "BASH_ENV": "/workspace/skills/probe/SKILL.md",
        "PYTHONPATH": "/workspace/work", "IFS": "x", "LD_LIBRARY_PATH": "/workspace/work", "LD_AUDIT": "/x",
        "ENV": "/x", "PROMPT_COMMAND": "exit 9", "SHELLOPTS": "noexec", "MALLOC_CHECK_": "3",
    });
    let answer = fixture
        .request(json!({"argv": ["env", "-0"], "env": hostile}))
        .run()
        .expect_report();
    assert_eq!(answer["exit_code"], 0, "{}", answer.describe());
    for (name, value) in hostile.as_object().unwrap() {
        let entry = format!("{name}={}", value.as_str().unwrap());
        assert!(
            answer.stdout().split('\0').any(|line| line == entry),
            "{entry} is missing: {}",
            answer.describe()
        );
    }
    // A value of a megabyte is refused or passed on whole.
    let huge = "v".repeat(1 << 20);
    let answer = fixture
        .request(json!({"command": "echo ${#HUGE}", "env": {"HUGE": huge}}))
        .run();
    if answer.is_refused() {
        assert_eq!(answer.expect_refusal(), ("invalid_request", Some("env.HUGE")));
    } else {
        assert_eq!(answer.expect_report().stdout().trim(), "1048576");
    }
    let answer = fixture
        .request(json!({"command": "echo ${#LARGE}", "env": {"LARGE": "v".repeat(100_000)}}))
        .run()
        .expect_report();
    assert_eq!(answer.stdout().trim(), "100000");
}

#[test]
fn h027_an_unusual_interpreter_is_an_ordinary_error() {
    let fixture = Fixture::new();
    let host = fixture.add_host_file("interpreter", "#!/bin/sh\necho host interpreter\n");
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
    let dir = fixture.add_skill("shebangs", &files);
    for (name, _) in scripts {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(dir.join("scripts").join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
        for request in [
            json!({"skill": "shebangs", "script": format!("scripts/{name}"), "timeout": 100}),
            json!({"skill": "shebangs", "command": format!("scripts/{name}"), "timeout": 100}),
            json!({"skill": "shebangs", "argv": [format!("/workspace/skills/shebangs/scripts/{name}")], "timeout": 100}),
        ] {
            let answer = fixture.request(request.clone()).run();
            if answer.is_refused() {
                assert_eq!(
                    answer.expect_refusal(),
                    ("invalid_request", Some("script")),
                    "{request}: {}",
                    answer.describe()
                );
                continue;
            }
            let answer = answer.expect_report();
            assert_eq!(answer["ended_by"], "exit", "{request}: {}", answer.describe());
            assert!(!answer.stdout().contains("host interpreter"), "{request}");
        }
    }
}
