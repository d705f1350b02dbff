//! `--each`: one job for each file, whatever the file is called.

use std::fs;

use serde_json::json;

use super::results::{read_results, summary};
use crate::harness::Fixture;

/// Names that a shell would read as something else, if it ever read them.
const HOSTILE_NAMES: &[&str] = &[
    "plain.csv",
    "two words.csv",
    "it's.csv",
    "say \"hi\".csv",
    "new\nline.csv",
    "$(cd $OUTPUT_DIR; touch injected).csv",
    "`cd $OUTPUT_DIR; touch injected`.csv",
    "; cd $OUTPUT_DIR; touch injected #.csv",
    "-rf.csv",
    "--help.csv",
    "*.csv",
    "{stem}.csv",
    "${JOB_NAME}.csv",
    "back\\slash.csv",
    "é.csv",
];

fn add_hostile_files(fixture: &Fixture) {
    for name in HOSTILE_NAMES {
        fixture.add_host_file(&format!("data/{name}"), format!("content of {name}"));
    }
}

/// Checks that each job received exactly its file and its name.
#[track_caller]
fn assert_jobs_saw_their_names(fixture: &Fixture) {
    let out = fixture.path("results");
    let results = read_results(&out);
    assert_eq!(results.len(), HOSTILE_NAMES.len());
    let mut names: Vec<String> = Vec::new();
    for (id, result) in &results {
        assert_eq!(result["status"], "ok", "{id}: {result}");
        let files = out.join("jobs").join(id).join("out");
        let name = fs::read_to_string(files.join("name")).unwrap();
        let content = fs::read_to_string(files.join("content")).unwrap();
        assert_eq!(content, format!("content of {name}"), "{id}");
        assert_eq!(
            fs::read_dir(&files).unwrap().count(),
            2,
            "{id}: only the two files of the command"
        );
        names.push(name);
    }
    names.sort();
    let mut expected: Vec<&str> = HOSTILE_NAMES.to_vec();
    expected.sort_unstable();
    assert_eq!(names, expected);
}

#[test]
fn hostile_file_names_are_never_shell_text() {
    let fixture = Fixture::new();
    add_hostile_files(&fixture);
    let data = fixture.path_str("host/data");
    let each = ["batch", "run", "--skill", "probe", "--each", "*.csv", "--out"];
    let out = fixture.path_str("results");
    let shell = "cat {input} > \"$OUTPUT_DIR/content\" && printf %s {name} > \"$OUTPUT_DIR/name\"";
    let args: Vec<&str> = each.iter().copied().chain([out.as_str(), "--", shell]).collect();
    let answer = fixture.command(&args).in_dir(data.as_ref()).run();
    assert_eq!(answer.code, Some(0), "{}", answer.describe());
    assert_jobs_saw_their_names(&fixture);
    fs::remove_dir_all(&out).unwrap();

    // Without a shell of ours: the values are arguments of a script of the user.
    let script = "cat -- \"$1\" > \"$OUTPUT_DIR/content\" && printf %s \"$2\" > \"$OUTPUT_DIR/name\"";
    let argv = [out.as_str(), "--", "bash", "-c", script, "_", "{input}", "{name}"];
    let args: Vec<&str> = each.iter().copied().chain(argv).collect();
    let answer = fixture.command(&args).in_dir(data.as_ref()).run();
    assert_eq!(answer.code, Some(0), "{}", answer.describe());
    assert_jobs_saw_their_names(&fixture);
}

#[test]
fn a_placeholder_that_a_shell_could_read_is_refused_before_anything_runs() {
    let fixture = Fixture::new();
    fixture.add_host_file("a.csv", "1");
    let (pattern, out) = (fixture.path_str("host/*.csv"), fixture.path_str("results"));
    let run = |command: &[&str]| {
        let args = [
            "batch", "run", "--skill", "probe", "--each", &pattern, "--out", &out, "--json", "--",
        ];
        let args: Vec<&str> = args.into_iter().chain(command.iter().copied()).collect();
        fixture.command(&args).run()
    };
    for (command, field) in [
        (vec!["cat '{input}'"], "command"),
        (vec!["cat \"{input}\""], "command"),
        (vec!["bash", "-c", "cat {input}"], "argv"),
    ] {
        let answer = run(&command);
        assert_eq!(answer.code, Some(125), "{}", answer.describe());
        assert_eq!(answer.expect_refusal(), ("invalid_request", Some(field)), "{command:?}");
        assert!(!fixture.path("results").exists());
    }
    assert_eq!(run(&["cat {input}"]).code, Some(0), "the control is accepted");
}

#[test]
fn a_dry_run_shows_the_first_jobs_and_runs_nothing() {
    let fixture = Fixture::new();
    for index in 0..7 {
        fixture.add_host_file(&format!("data/{index}.csv"), "x");
    }
    let pattern = fixture.path_str("host/data/*.csv");
    let args = [
        "batch",
        "run",
        "--skill",
        "probe",
        "--each",
        &pattern,
        "--dry-run",
        "--json",
        "--",
    ];
    let args: Vec<&str> = args.into_iter().chain(["wc -c {input} {index}"]).collect();
    let answer = fixture.command(&args).run();
    assert_eq!(
        (answer.code, &answer["jobs"], &answer["to_run"]),
        (Some(0), &json!(7), &json!(7))
    );
    let first = &answer["first"][0];
    assert_eq!(first["id"], "0.csv");
    assert_eq!(first["request"]["command"], "wc -c \"${JOB_INPUT}\" \"${JOB_INDEX}\"");
    assert_eq!(first["request"]["env"]["JOB_INPUT"], "/workspace/work/inputs/0.csv");
    assert_eq!(answer["first"].as_array().unwrap().len(), 5);
    assert!(fs::read_dir(fixture.path("scratch")).unwrap().next().is_none());
}

#[test]
fn a_pattern_without_files_and_an_unknown_skill_are_errors() {
    let fixture = Fixture::new();
    fixture.add_host_file("a.csv", "1");
    let out = fixture.path_str("results");
    let refused = |skill: &str, pattern: &str| {
        let pattern = fixture.path_str(pattern);
        let args = [
            "batch", "run", "--skill", skill, "--each", &pattern, "--out", &out, "--json", "--", "true",
        ];
        let answer = fixture.command(&args).run();
        assert_eq!(answer.code, Some(125), "{}", answer.describe());
        answer["error"]["message"].as_str().unwrap().to_owned()
    };
    assert!(refused("probe", "host/*.xls").contains("no file matches"));
    assert!(
        refused("prob", "host/*.csv").contains("probe"),
        "the nearest skill is named"
    );
    assert!(!fixture.path("results").exists());
}

#[test]
fn outputs_are_files_and_the_summary_counts_them() {
    let fixture = Fixture::new();
    for name in ["a", "b"] {
        fixture.add_host_file(&format!("data/{name}.txt"), name);
    }
    let (pattern, out) = (fixture.path_str("host/data/*.txt"), fixture.path("results"));
    let out_str = out.to_str().unwrap();
    let args = [
        "batch", "run", "--skill", "probe", "--each", &pattern, "--out", out_str, "--json",
    ];
    let command = ["--output", "out/*.up", "--env", "FROM=<{name}>", "--"];
    let line = "tr a-z A-Z < {input} > \"$OUTPUT_DIR\"/{stem}.up; echo \"$FROM\"; touch \"$OUTPUT_DIR/other\"";
    let args: Vec<&str> = args.into_iter().chain(command).chain([line]).collect();
    let answer = fixture.command(&args).run();
    assert_eq!(
        (answer.code, &answer["ok"], &answer["executed"]),
        (Some(0), &json!(2), &json!(2))
    );
    let results = read_results(&out);
    assert_eq!(results["a.txt"]["stdout"], "<a.txt>\n");
    let file = &results["a.txt"]["output_files"][0];
    assert_eq!(
        (&file["name"], file.get("content")),
        (&json!("out/a.up"), None),
        "content is in the file, not in the line"
    );
    assert_eq!(fs::read_to_string(out.join("jobs/a.txt/out/a.up")).unwrap(), "A");
    assert!(
        !out.join("jobs/a.txt/out/other").exists(),
        "only what --output selects is kept"
    );
    assert_eq!(summary(&out)["ok"], 2);
    assert_eq!(fs::read_to_string(out.join("failed.txt")).unwrap(), "");
}
