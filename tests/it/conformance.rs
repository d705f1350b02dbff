//! The conformance list: every executor gives the same result for the same request.
//!
//! The list is data in `tests/conformance`; its README describes the format of a case.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::harness::{Answer, Fixture, collect_mismatches, is_too_slow, need, need_docker, with_docker};
use crate::workspace::root;

/// One case of the list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    needs: Option<String>,
    needs_layer: Option<String>,
    steps: Option<Vec<Step>>,
    request: Option<Map<String, Value>>,
    #[serde(default)]
    flags: Vec<String>,
    session: Option<String>,
    expect: Option<Value>,
    error: Option<Value>,
    exit: Option<i32>,
    within: Option<f64>,
    duration_within: Option<f64>,
}

/// One request, or one other command, and its expected result.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    request: Option<Map<String, Value>>,
    command_line: Option<Vec<String>>,
    prints: Option<String>,
    #[serde(default)]
    flags: Vec<String>,
    session: Option<String>,
    expect: Option<Value>,
    error: Option<Value>,
    exit: Option<i32>,
    within: Option<f64>,
    duration_within: Option<f64>,
}

impl Case {
    fn into_steps(self) -> Vec<Step> {
        let Self {
            request,
            flags,
            session,
            expect,
            error,
            exit,
            within,
            duration_within,
            ..
        } = self;
        self.steps.unwrap_or_else(|| {
            vec![Step {
                request,
                command_line: None,
                prints: None,
                flags,
                session,
                expect,
                error,
                exit,
                within,
                duration_within,
            }]
        })
    }
}

/// Defines one test for each subject of the list and each executor.
macro_rules! conformance {
    ($executor:ident: $($subject:ident),+ $(,)?) => {
        mod $executor {
            $(
                #[test]
                fn $subject() {
                    super::$executor(stringify!($subject));
                }
            )+

            #[test]
            fn every_subject_has_a_test() {
                super::assert_no_subject_is_missing(&[$(stringify!($subject)),+]);
            }
        }
    };
}

/// Runs the list with the local executor.
fn local(subject: &str) {
    let results = check_subject("local", subject);
    assert_no_failures(&results);
}

/// Runs the list in containers, and with the local executor for comparison.
#[expect(clippy::print_stdout, reason = "the table belongs to the output of the test")]
fn docker(subject: &str) {
    if !need_docker() {
        return;
    }
    let local = check_subject("local", subject);
    let docker = with_docker(|| check_subject("docker", subject));
    let table = comparison_table(subject, &local, &docker);
    println!("{table}");
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join(format!("{subject}.txt")), table).unwrap();
    assert_no_failures(&docker);
}

conformance!(local:
    artifacts,
    captured_text,
    endings,
    environment,
    globs,
    inputs,
    interpreters,
    limits,
    outputs,
    sessions,
    skills_beside,
    standard_input,
    working_directory,
);

conformance!(docker:
    artifacts,
    captured_text,
    endings,
    environment,
    globs,
    inputs,
    interpreters,
    limits,
    outputs,
    sessions,
    skills_beside,
    standard_input,
    working_directory,
);

/// The result of one case.
struct Outcome {
    name: String,
    /// `None` where the case was skipped; otherwise the failure, if any.
    failure: Option<Option<String>>,
}

fn comparison_table(subject: &str, local: &[Outcome], docker: &[Outcome]) -> String {
    let word = |outcome: &Outcome| match &outcome.failure {
        None => "skipped",
        Some(None) => "ok",
        Some(Some(_)) => "FAILED",
    };
    let mut table = format!("{:<66} {:<8} docker\n", subject.replace('_', " "), "local");
    for (here, there) in local.iter().zip(docker) {
        assert_eq!(here.name, there.name);
        table += &format!("  {:<64} {:<8} {}\n", here.name, word(here), word(there));
    }
    table
}

fn assert_no_failures(outcomes: &[Outcome]) {
    let failures: Vec<&str> = outcomes
        .iter()
        .filter_map(|outcome| outcome.failure.as_ref()?.as_deref())
        .collect();
    assert!(
        failures.is_empty(),
        "{} cases fail:\n{}",
        failures.len(),
        failures.join("\n\n")
    );
}

fn assert_no_subject_is_missing(tested: &[&str]) {
    for entry in fs::read_dir(root().join("tests/conformance")).unwrap().flatten() {
        let path = entry.path();
        let subject = path.file_stem().unwrap().to_str().unwrap();
        let is_list = path.extension().is_some_and(|extension| extension == "json");
        assert!(!is_list || tested.contains(&subject), "{subject} has no test");
    }
}

fn check_subject(executor: &str, subject: &str) -> Vec<Outcome> {
    let text = fs::read_to_string(root().join(format!("tests/conformance/{subject}.json"))).unwrap();
    let fixture = Fixture::new();
    let text = text
        .replace("{HOST}", &fixture.path_str("host"))
        .replace("{LARGE_SHA256}", &create_files(&fixture));
    let cases: Vec<Case> = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{subject}.json: {error}"));
    assert!(!cases.is_empty());
    let mut outcomes = Vec::new();
    for case in cases {
        let program = case.needs.as_deref().is_none_or(|program| match fixture.docker() {
            None => need(Path::new(program).exists(), program),
            // A program that the image lacks is not a missing need of the machine.
            Some(_) => fixture.run_shell(&format!("test -e {program}"))["exit_code"] == 0,
        });
        let layer = case.needs_layer.as_deref().is_none_or(|layer| {
            let answer = fixture
                .request(json!({"skill": "demo", "command": "true"}))
                .run()
                .expect_report();
            need(answer.layer_status(layer) == "enforced", layer)
        });
        let name = case.name.clone();
        if !(program && layer) {
            outcomes.push(Outcome { name, failure: None });
            continue;
        }
        let mut failure = None;
        for (number, step) in case.into_steps().iter().enumerate() {
            let mut wrong = Vec::new();
            let answer = check_step(executor, &fixture, step, &mut wrong);
            if !wrong.is_empty() {
                failure = Some(format!(
                    "{subject}: {name} (step {number})\n  {}\n{answer}",
                    wrong.join("\n  ")
                ));
                break;
            }
        }
        let failure = Some(failure);
        outcomes.push(Outcome { name, failure });
    }
    outcomes
}

fn check_step(executor: &str, fixture: &Fixture, step: &Step, wrong: &mut Vec<String>) -> String {
    let answer = run_step(executor, fixture, step);
    if let Some(expected) = &step.expect {
        collect_mismatches(expected, answer.json(), "report", wrong);
        collect_mismatches(&json!({"executor": executor}), answer.json(), "report", wrong);
    }
    if let Some(expected) = &step.error {
        collect_mismatches(expected, &answer["error"], "error", wrong);
        if answer["error"].is_null() {
            wrong.push("the request was not refused".to_owned());
        }
    }
    let exit = step.exit.or(step.error.as_ref().map(|_| 125));
    if exit.is_some() && answer.code != exit {
        wrong.push(format!("the exit code is {:?}, not {exit:?}", answer.code));
    }
    if let Some(seconds) = step.within
        && is_too_slow(answer.process.wall, Duration::from_secs_f64(seconds))
    {
        wrong.push(format!("it took {:?}, more than {seconds} s", answer.process.wall));
    }
    if let Some(seconds) = step.duration_within {
        let duration = Duration::from_millis(answer["duration_ms"].as_u64().unwrap_or(u64::MAX));
        if is_too_slow(duration, Duration::from_secs_f64(seconds)) {
            wrong.push(format!("the run took {duration:?}, more than {seconds} s"));
        }
    }
    if let Some(expected) = &step.prints {
        let packed = |text: &str| text.split_whitespace().collect::<String>();
        let printed = packed(&String::from_utf8_lossy(&answer.process.stdout));
        if !printed.contains(&packed(expected)) {
            wrong.push(format!("it does not print {expected}"));
        }
    }
    answer.describe()
}

fn run_step(executor: &str, fixture: &Fixture, step: &Step) -> Answer {
    let flags: Vec<&str> = step.flags.iter().map(String::as_str).collect();
    let invocation = match (&step.request, &step.command_line) {
        (Some(request), None) => {
            let mut request = request.clone();
            request.entry("skill").or_insert(json!("demo"));
            if executor != "local" {
                request.insert("executor".to_owned(), json!(executor));
            }
            fixture.request(Value::Object(request))
        }
        (None, Some(words)) => fixture.command(&words.iter().map(String::as_str).collect::<Vec<_>>()),
        _ => panic!("a step has a request or a command line"),
    };
    let invocation = invocation.with_args(&flags);
    invocation.in_optional_session(step.session.as_deref()).run()
}

/// Creates the skills and files that the cases use. Returns the digest of the large file.
fn create_files(fixture: &Fixture) -> String {
    let demo = fixture.add_skill(
        "demo",
        &[
            (
                "scripts/hello.py",
                "import sys\nprint('hello from python', sys.argv[1:])\n",
            ),
            ("scripts/hello.sh", "echo hello from bash \"$1\"\n"),
            ("scripts/hello.js", "console.log('hello from node', process.argv[2])\n"),
            ("scripts/by-line.txt", "#!/bin/sh\necho hello from sh\n"),
            (
                "scripts/by-env",
                "#!/usr/bin/env python3\nprint('hello from env python')\n",
            ),
            (
                "scripts/windows.py",
                "#!/usr/bin/env python3\r\nprint('hello from windows')\r\n",
            ),
            (
                "scripts/with-argument",
                "#!/bin/bash -e\necho before\nfalse\necho after\n",
            ),
            ("scripts/unknown.xyz", "no idea\n"),
            (
                "scripts/upper.py",
                "import sys\nsys.stdout.write(sys.stdin.read().upper())\n",
            ),
            ("scripts/sibling.py", "WORD = 'imported'\n"),
            ("scripts/imports.py", "import sibling\nprint(sibling.WORD)\n"),
            ("scripts/imports_module.py", "print('module')\n"),
            ("scripts/where.sh", "echo $PWD $0\n"),
            ("scripts/fails.py", "raise ValueError('on purpose')\n"),
            ("bin/hello", "#!/bin/sh\necho hello from bin\n"),
            ("data/words.txt", "alpha\nbeta\n"),
            ("docs/deep/guide.md", "# Guide\n"),
        ],
    );
    fs::set_permissions(demo.join("bin/hello"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink(fixture.path("host/canary.txt"), demo.join("escape.txt")).unwrap();
    fixture.add_skill("tools", &[("lib/tool.sh", "echo tool at work\n")]);
    fixture.add_profile(
        "tiny",
        &[
            ("pids", "24"),
            ("memory", "96 MiB"),
            ("workspace", "8 MiB"),
            ("workspace_inodes", "500"),
            ("cpu", "1 s"),
            ("open_files", "64"),
            ("file", "4 MiB"),
            ("output", "4 KiB"),
        ],
    );
    fixture.add_profile("hasty", &[("wall", "1 s"), ("wall_max", "2 s")]);
    fixture.add_host_file("notes.txt", "notes of the host\n");
    for (name, text) in [
        ("dir/a.txt", "a\n"),
        ("dir/b.txt", "b\n"),
        ("dir/sub/deep.txt", "deep\n"),
    ] {
        fixture.add_host_file(name, text);
    }
    fixture.add_host_file("it's \"quoted\" $(id).txt", "quoted\n");
    symlink(fixture.path("host/notes.txt"), fixture.path("host/dir/escape.txt")).unwrap();
    fixture.add_host_file("picture.png", PICTURE);
    let large: Vec<u8> = (0..5_u32 << 20)
        .map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()[3])
        .collect();
    let large = fixture.add_host_file("large.bin", large);
    fixture
        .control_shell(&format!("sha256sum {}", large.display()))
        .split(' ')
        .next()
        .unwrap()
        .to_owned()
}

/// A PNG of one pixel.
const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\
    \0\0\0\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\0\x05\0\x01\xff\x89\x99=\x1d\0\0\0\0IEND\xaeB`\x82";
