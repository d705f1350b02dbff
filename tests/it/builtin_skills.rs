//! Every built-in skill passes the cases of its own test data in the sandbox.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::harness::Fixture;
use crate::workspace::root;

/// One case of a skill's `tests/cases.json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    command: String,
    inputs: Vec<Input>,
    stdin: Option<String>,
    exit_code: i64,
    stdout: Option<String>,
    stdout_file: Option<String>,
    outputs: Vec<Output>,
    #[serde(default)]
    with_skills: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    from: String,
    to: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Output {
    path: String,
    expected: String,
}

/// Defines one test for each skill.
macro_rules! skills {
    ($($test:ident: $skill:literal),+ $(,)?) => {
        $(
            #[test]
            fn $test() {
                check_skill($skill);
            }
        )+

        const TESTED: &[&str] = &[$($skill),+];
    };
}

skills! {
    archive_inspect: "archive-inspect",
    csv_report: "csv-report",
    dir_report: "dir-report",
    json_query: "json-query",
    log_triage: "log-triage",
    python_math: "python-math",
    text_stats: "text-stats",
}

#[test]
fn every_built_in_skill_is_tested() {
    let entries = fs::read_dir(root().join("skills")).unwrap().flatten();
    let skills = entries.filter(|entry| entry.path().join("SKILL.md").exists());
    let mut names: Vec<String> = skills.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, TESTED);
}

fn check_skill(skill: &str) {
    let fixture = Fixture::new();
    let dir = root().join("skills").join(skill);
    let text = fs::read_to_string(dir.join("tests/cases.json")).unwrap();
    let cases: Vec<Case> = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{skill}: {error}"));
    assert!(cases.len() >= 3, "{skill} has only {} cases", cases.len());
    let failures_of = |case: &Case| {
        let failures = check_case(&fixture, skill, &dir, case);
        failures
            .into_iter()
            .map(|failure| format!("{}: {failure}", case.name))
            .collect::<Vec<_>>()
    };
    let failures: Vec<String> = cases.iter().flat_map(failures_of).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

fn check_case(fixture: &Fixture, skill: &str, dir: &Path, case: &Case) -> Vec<String> {
    let inputs: Vec<Value> = case
        .inputs
        .iter()
        .map(|input| json!({"from": format!("host://{}", dir.join(&input.from).display()), "to": input.to}))
        .collect();
    let globs: Vec<&str> = case.outputs.iter().map(|output| output.path.as_str()).collect();
    let out_dir = fixture.path(&format!("kept-{skill}"));
    drop(fs::remove_dir_all(&out_dir));
    let mut request = json!({
        "skill": skill, "command": case.command, "inputs": inputs, "timeout": 110, "with_skills": case.with_skills,
        "outputs": {"globs": globs, "inline": false},
    });
    if let Some(stdin) = &case.stdin {
        request["stdin"] = json!(stdin);
    }
    let skills = root().join("skills");
    let flags = [
        "--skills",
        skills.to_str().unwrap(),
        "--allow-host",
        dir.to_str().unwrap(),
        "--out-dir",
        out_dir.to_str().unwrap(),
    ];
    let answer = fixture.request(request).with_args(&flags).run().expect_report();
    let mut failures = Vec::new();
    if answer["exit_code"] != case.exit_code {
        failures.push(format!(
            "exit code {}, not {}: {}",
            answer["exit_code"],
            case.exit_code,
            answer.describe()
        ));
    }
    let from_file = |path: &String| fs::read_to_string(dir.join(path)).unwrap();
    if let Some(expected) = case.stdout.clone().or(case.stdout_file.as_ref().map(from_file))
        && answer.stdout() != expected
        && answer["stdout_truncated"] == false
    {
        failures.push(format!("stdout is {:?}, not {expected:?}", answer.stdout()));
    }
    for output in &case.outputs {
        let expected = fs::read(dir.join(&output.expected)).unwrap();
        match fs::read(out_dir.join(&output.path)) {
            Ok(content) if content == expected => {}
            Ok(_) => failures.push(format!("{} differs from {}", output.path, output.expected)),
            Err(error) => failures.push(format!(
                "{} was not collected: {error}: {}",
                output.path,
                answer.describe()
            )),
        }
    }
    failures
}
