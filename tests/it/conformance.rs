//! The conformance list against an executor: one list, the same result for the same request on each of them.
//!
//! The list is data, in `tests/conformance`; its README says how a case is written.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::lab::{Answer, Scene, need, need_docker, on_docker, subset};
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
}

/// One request, or one other command, and what comes of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    request: Option<Map<String, Value>>,
    tell: Option<Vec<String>>,
    says: Option<String>,
    #[serde(default)]
    flags: Vec<String>,
    session: Option<String>,
    expect: Option<Value>,
    error: Option<Value>,
    exit: Option<i32>,
    within: Option<f64>,
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
            ..
        } = self;
        self.steps.unwrap_or_else(|| {
            vec![Step {
                request,
                tell: None,
                says: None,
                flags,
                session,
                expect,
                error,
                exit,
                within,
            }]
        })
    }
}

/// The subjects of the list, each a test of its own on each executor.
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
            fn every_subject_is_run() {
                super::refuse_forgotten_subjects(&[$(stringify!($subject)),+]);
            }
        }
    };
}

/// The list in the kernel's sandbox.
fn local(subject: &str) {
    let results = check_subject("local", subject);
    refuse_complaints(&results);
}

/// The list in containers, beside the kernel's sandbox.
#[expect(clippy::print_stdout, reason = "the table is for whoever reads the test's output")]
fn docker(subject: &str) {
    if !need_docker() {
        return;
    }
    let local = check_subject("local", subject);
    let docker = on_docker(|| check_subject("docker", subject));
    let table = side_by_side(subject, &local, &docker);
    println!("{table}");
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance");
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join(format!("{subject}.txt")), table).unwrap();
    refuse_complaints(&docker);
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

/// What came of one case.
struct Outcome {
    name: String,
    /// None where the case could not be tried.
    complaint: Option<Option<String>>,
}

fn side_by_side(subject: &str, local: &[Outcome], docker: &[Outcome]) -> String {
    let word = |outcome: &Outcome| match &outcome.complaint {
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

fn refuse_complaints(outcomes: &[Outcome]) {
    let complaints: Vec<&str> = outcomes
        .iter()
        .filter_map(|outcome| outcome.complaint.as_ref()?.as_deref())
        .collect();
    assert!(
        complaints.is_empty(),
        "{} of the list fail:\n{}",
        complaints.len(),
        complaints.join("\n\n")
    );
}

fn refuse_forgotten_subjects(known: &[&str]) {
    for entry in fs::read_dir(root().join("tests/conformance")).unwrap().flatten() {
        let path = entry.path();
        let subject = path.file_stem().unwrap().to_str().unwrap();
        let is_list = path.extension().is_some_and(|extension| extension == "json");
        assert!(!is_list || known.contains(&subject), "{subject} is in no test");
    }
}

fn check_subject(executor: &str, subject: &str) -> Vec<Outcome> {
    let text = fs::read_to_string(root().join(format!("tests/conformance/{subject}.json"))).unwrap();
    let scene = Scene::new();
    let text = text
        .replace("{HOST}", &scene.text("host"))
        .replace("{LARGE_SHA256}", &furnish(&scene));
    let cases: Vec<Case> = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{subject}.json: {error}"));
    assert!(!cases.is_empty());
    let mut outcomes = Vec::new();
    for case in cases {
        let program = case.needs.as_deref().is_none_or(|program| match scene.docker() {
            None => need(Path::new(program).exists(), program),
            // What an image lacks is no gap of the machine.
            Some(_) => scene.sh(&format!("test -e {program}"))["exit_code"] == 0,
        });
        let layer = case.needs_layer.as_deref().is_none_or(|layer| {
            let answer = scene.ask(json!({"skill": "demo", "command": "true"})).go().reported();
            need(answer.layer(layer) == "enforced", layer)
        });
        let name = case.name.clone();
        if !(program && layer) {
            outcomes.push(Outcome { name, complaint: None });
            continue;
        }
        let mut complaint = None;
        for (number, step) in case.into_steps().iter().enumerate() {
            let mut wrong = Vec::new();
            let told = check_step(executor, &scene, step, &mut wrong);
            if !wrong.is_empty() {
                complaint = Some(format!(
                    "{subject}: {name} (step {number})\n  {}\n{told}",
                    wrong.join("\n  ")
                ));
                break;
            }
        }
        let complaint = Some(complaint);
        outcomes.push(Outcome { name, complaint });
    }
    outcomes
}

fn check_step(executor: &str, scene: &Scene, step: &Step, wrong: &mut Vec<String>) -> String {
    let answer = ask(executor, scene, step);
    if let Some(expected) = &step.expect {
        subset(expected, answer.json(), "report", wrong);
        subset(&json!({"executor": executor}), answer.json(), "report", wrong);
    }
    if let Some(expected) = &step.error {
        subset(expected, &answer["error"], "error", wrong);
        if answer["error"].is_null() {
            wrong.push("it was not refused".to_owned());
        }
    }
    let exit = step.exit.or(step.error.as_ref().map(|_| 125));
    if exit.is_some() && answer.code != exit {
        wrong.push(format!("the exit code is {:?}, not {exit:?}", answer.code));
    }
    if let Some(seconds) = step.within
        && answer.finished.wall > Duration::from_secs_f64(seconds)
    {
        wrong.push(format!("it took {:?}, more than {seconds} s", answer.finished.wall));
    }
    if let Some(says) = &step.says {
        let packed = |text: &str| text.split_whitespace().collect::<String>();
        let said = packed(&String::from_utf8_lossy(&answer.finished.stdout));
        if !said.contains(&packed(says)) {
            wrong.push(format!("it does not say {says}"));
        }
    }
    answer.told()
}

fn ask(executor: &str, scene: &Scene, step: &Step) -> Answer {
    let flags: Vec<&str> = step.flags.iter().map(String::as_str).collect();
    let ask = match (&step.request, &step.tell) {
        (Some(request), None) => {
            let mut request = request.clone();
            request.entry("skill").or_insert(json!("demo"));
            if executor != "local" {
                request.insert("executor".to_owned(), json!(executor));
            }
            scene.ask(Value::Object(request))
        }
        (None, Some(words)) => scene.tell(&words.iter().map(String::as_str).collect::<Vec<_>>()),
        _ => panic!("a step asks for a run or tells another command"),
    };
    let ask = ask.with(&flags);
    ask.in_session(step.session.as_deref()).go()
}

/// The world that the cases speak of; gives the digest of the large file.
fn furnish(scene: &Scene) -> String {
    let demo = scene.skill(
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
    symlink(scene.path("host/canary.txt"), demo.join("escape.txt")).unwrap();
    scene.skill("tools", &[("lib/tool.sh", "echo tool at work\n")]);
    scene.profile(
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
    scene.profile("hasty", &[("wall", "1 s"), ("wall_max", "2 s")]);
    scene.host_file("notes.txt", "notes of the host\n");
    for (name, text) in [
        ("dir/a.txt", "a\n"),
        ("dir/b.txt", "b\n"),
        ("dir/sub/deep.txt", "deep\n"),
    ] {
        scene.host_file(name, text);
    }
    scene.host_file("it's \"quoted\" $(id).txt", "quoted\n");
    symlink(scene.path("host/notes.txt"), scene.path("host/dir/escape.txt")).unwrap();
    scene.host_file("picture.png", PICTURE);
    let large: Vec<u8> = (0..5_u32 << 20)
        .map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()[3])
        .collect();
    let large = scene.host_file("large.bin", large);
    scene
        .control_sh(&format!("sha256sum {}", large.display()))
        .split(' ')
        .next()
        .unwrap()
        .to_owned()
}

/// The smallest picture there is: one pixel.
const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\
    \0\0\0\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\0\x05\0\x01\xff\x89\x99=\x1d\0\0\0\0IEND\xaeB`\x82";
