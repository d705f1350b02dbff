//! Every built-in skill does what its own test data says, in the sandbox.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::lab::Scene;
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

/// Each skill is a test of its own.
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
fn every_skill_is_tested() {
    let entries = fs::read_dir(root().join("skills")).unwrap().flatten();
    let skills = entries.filter(|entry| entry.path().join("SKILL.md").exists());
    let mut names: Vec<String> = skills.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, TESTED);
}

fn check_skill(skill: &str) {
    let scene = Scene::new();
    let dir = root().join("skills").join(skill);
    let text = fs::read_to_string(dir.join("tests/cases.json")).unwrap();
    let cases: Vec<Case> = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{skill}: {error}"));
    assert!(cases.len() >= 3, "{skill} has only {} cases", cases.len());
    let wrong = |case: &Case| {
        let complaints = check(&scene, skill, &dir, case);
        complaints
            .into_iter()
            .map(|wrong| format!("{}: {wrong}", case.name))
            .collect::<Vec<_>>()
    };
    let complaints: Vec<String> = cases.iter().flat_map(wrong).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n\n"));
}

fn check(scene: &Scene, skill: &str, dir: &Path, case: &Case) -> Vec<String> {
    let inputs: Vec<Value> = case
        .inputs
        .iter()
        .map(|input| json!({"from": format!("host://{}", dir.join(&input.from).display()), "to": input.to}))
        .collect();
    let globs: Vec<&str> = case.outputs.iter().map(|output| output.path.as_str()).collect();
    let kept = scene.path(&format!("kept-{skill}"));
    drop(fs::remove_dir_all(&kept));
    let mut request = json!({
        "skill": skill, "command": case.command, "inputs": inputs, "timeout": 60, "with_skills": case.with_skills,
        "outputs": {"globs": globs, "inline": false},
    });
    if let Some(stdin) = &case.stdin {
        request["stdin"] = json!(stdin);
    }
    let (skills, here) = (root().join("skills"), kept.to_str().unwrap());
    let flags = [
        "--skills",
        skills.to_str().unwrap(),
        "--allow-host",
        dir.to_str().unwrap(),
        "--out-dir",
        here,
    ];
    let answer = scene.ask(request).with(&flags).go().reported();
    let mut wrong = Vec::new();
    if answer["exit_code"] != case.exit_code {
        wrong.push(format!(
            "exit code {}, not {}: {}",
            answer["exit_code"],
            case.exit_code,
            answer.told()
        ));
    }
    let from_file = |path: &String| fs::read_to_string(dir.join(path)).unwrap();
    if let Some(expected) = case.stdout.clone().or(case.stdout_file.as_ref().map(from_file))
        && answer.stdout() != expected
        && answer["stdout_truncated"] == false
    {
        wrong.push(format!("stdout is {:?}, not {expected:?}", answer.stdout()));
    }
    for output in &case.outputs {
        let expected = fs::read(dir.join(&output.expected)).unwrap();
        match fs::read(kept.join(&output.path)) {
            Ok(content) if content == expected => {}
            Ok(_) => wrong.push(format!("{} differs from {}", output.path, output.expected)),
            Err(error) => wrong.push(format!("{} was not collected: {error}: {}", output.path, answer.told())),
        }
    }
    wrong
}
