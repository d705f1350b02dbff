//! Crashes and changes between two invocations: no finished job runs again, and every job has exactly one result.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use super::results::{job_lines, read_results, run_ids};
use crate::harness::{Answer, Fixture, kill_and_reap};
use crate::workspace::root;

/// The number of files of the long test; the full size is `SKILLBOX_TEST_BATCH_FILES=500`.
#[expect(
    clippy::disallowed_methods,
    reason = "the size of the test is a setting of the tests"
)]
fn file_count() -> usize {
    let configured = std::env::var("SKILLBOX_TEST_BATCH_FILES").ok();
    configured.and_then(|text| text.parse().ok()).unwrap_or(100)
}

/// Every 25th file is broken.
fn is_broken(index: usize) -> bool {
    index % 25 == 7
}

fn write_tables(directory: &Path, count: usize) {
    fs::create_dir_all(directory).unwrap();
    for index in 0..count {
        let rows = format!(
            "date,region,units\n2024-01-01,north,{index}\n2024-01-02,south,{}\n",
            index + 1
        );
        let text = if is_broken(index) { String::new() } else { rows };
        fs::write(directory.join(format!("sales-{index:04}.csv")), text).unwrap();
    }
}

/// What must not differ between an interrupted batch and one that ran through.
fn outcomes(out: &Path) -> BTreeMap<String, Value> {
    let results = read_results(out).into_iter().map(|(id, result)| {
        let files = result["output_files"].as_array().unwrap().iter();
        let digests: Vec<_> = files
            .map(|file| (file["name"].clone(), file["sha256"].clone()))
            .collect();
        let outcome = json!([result["key"], result["status"], result["reason"], digests]);
        (id, outcome)
    });
    results.collect()
}

#[test]
fn a_killed_batch_goes_on_where_it_was() {
    let fixture = Fixture::new();
    let count = file_count();
    write_tables(&fixture.path("host/data"), count);
    let out = fixture.path("results");
    let skills = root().join("skills");
    let (out_str, skills) = (out.to_str().unwrap(), skills.to_str().unwrap());
    let args = [
        "--skills",
        skills,
        "batch",
        "run",
        "--skill",
        "csv-report",
        "--each",
        "data/*.csv",
    ];
    let command = "python3 scripts/report.py {input} --json out/report.json --svg out/chart.svg";
    let args: Vec<&str> = args
        .into_iter()
        .chain(["--out", out_str, "--json", "--", command])
        .collect();
    let batch = || fixture.bare_command(&args).in_dir(&fixture.path("host"));

    let mut child = batch().spawn();
    fixture.wait_for("some results", || {
        let text = fs::read_to_string(out.join("results.jsonl")).unwrap_or_default();
        (text.lines().count() > count / 4).then_some(())
    });
    kill_and_reap(&mut child);
    // A crash of the machine may also leave an incomplete line.
    let before = {
        let text = fs::read_to_string(out.join("results.jsonl")).unwrap();
        let complete = &text[..text.rfind('\n').unwrap() + 1];
        fs::write(out.join("results.jsonl"), complete).unwrap();
        let ids = run_ids(&out);
        let mut file = fs::OpenOptions::new()
            .append(true)
            .open(out.join("results.jsonl"))
            .unwrap();
        file.write_all(b"{\"id\":\"sales-0000.csv\",\"key\":\"sha2").unwrap();
        ids
    };
    assert!(
        before.len() > count / 4 && before.len() < count,
        "{} of {count}",
        before.len()
    );

    // The sandboxes of the killed process end with it.
    let resumed = fixture.wait_for("the lock", || {
        let answer = batch().with_args(&["--resume"]).run();
        (!answer.mentions("\"busy\"")).then_some(answer)
    });
    let broken = (0..count).filter(|index| is_broken(*index)).count();
    assert_eq!(resumed.code, Some(1), "{}", resumed.describe());
    let counts = [
        &resumed["jobs"],
        &resumed["ok"],
        &resumed["failed"],
        &resumed["resumed"],
        &resumed["not_run"],
    ];
    let expected = [count, count - broken, broken, before.len(), 0];
    assert_eq!(counts.map(|value| value.as_u64().unwrap() as usize), expected);
    let after = run_ids(&out);
    for (id, run_id) in &before {
        assert_eq!(after.get(id), Some(run_id), "{id} ran twice");
    }
    let failed = fs::read_to_string(out.join("failed.txt")).unwrap();
    assert_eq!(failed.lines().count(), broken);
    for line in failed.lines() {
        assert!(line.ends_with("the file holds no rows"), "{line}");
    }
    for index in (0..count).filter(|index| !is_broken(*index)) {
        let files = out.join(format!("jobs/sales-{index:04}.csv/out"));
        assert!(
            files.join("report.json").is_file() && files.join("chart.svg").is_file(),
            "{index}"
        );
    }

    // Nothing is left to do, and nothing changes.
    let bytes = fs::read(out.join("results.jsonl")).unwrap();
    let again = batch().with_args(&["--resume"]).run();
    assert_eq!(
        (again.code, &again["executed"]),
        (Some(1), &json!(0)),
        "{}",
        again.describe()
    );
    assert_eq!(fs::read(out.join("results.jsonl")).unwrap(), bytes);

    // The same as without the crash; a part of the files suffices for the comparison.
    let whole = fixture.path("whole");
    let some = [
        "--skills",
        skills,
        "batch",
        "run",
        "--skill",
        "csv-report",
        "--each",
        "data/*[05].csv",
        "--each",
    ];
    let some = some
        .into_iter()
        .chain(["data/*7.csv", "--out", whole.to_str().unwrap(), "--json", "--", command]);
    let some: Vec<&str> = some.collect();
    let _some_failed = fixture.bare_command(&some).in_dir(&fixture.path("host")).run();
    let expected = outcomes(&whole);
    assert!(expected.len() >= count / 4);
    let found = outcomes(&out);
    for (id, outcome) in expected {
        assert_eq!(found[&id], outcome, "{id}");
    }
}

fn run_lines(fixture: &Fixture, lines: &str, more: &[&str]) -> Answer {
    fs::write(fixture.path("scratch/jobs.jsonl"), lines).unwrap();
    let out = fixture.path_str("results");
    let args = [
        "batch",
        "run",
        "jobs.jsonl",
        "--out",
        &out,
        "--json",
        "--resume",
        "--allow-host",
    ];
    let host = fixture.path_str("host");
    let args: Vec<&str> = args
        .into_iter()
        .chain([host.as_str()])
        .chain(more.iter().copied())
        .collect();
    fixture.command(&args).run()
}

#[test]
fn only_changed_failed_and_new_jobs_run_again() {
    let fixture = Fixture::new();
    let out = fixture.path("results");
    let input = fixture.add_host_file("input", "one");
    let request = |id: &str, command: &str| {
        let from = format!("host://{}", input.display());
        format!(
            "{}\n",
            json!({"id": id, "skill": "probe", "command": command, "inputs": [{"from": from}]})
        )
    };
    let lines = job_lines(&[("plain", "true"), ("fails", "exit 1")]) + &request("reads", "cat inputs/input");
    let executed = |lines: &str, more: &[&str]| {
        let before = run_ids(&out);
        let answer = run_lines(&fixture, lines, more);
        let after = run_ids(&out);
        let ran: Vec<String> = after
            .into_iter()
            .filter(|(id, run)| before.get(id) != Some(run))
            .map(|(id, _)| id)
            .collect();
        assert_eq!(answer["executed"], ran.len(), "{}", answer.describe());
        ran
    };
    assert_eq!(executed(&lines, &[]).len(), 3);
    assert_eq!(executed(&lines, &[]), [] as [&str; 0]);
    fs::write(&input, "two").unwrap();
    assert_eq!(executed(&lines, &[]), ["reads"], "a changed input");
    assert_eq!(executed(&lines, &["--resume-failed"]), ["fails"]);
    let lines = lines.replace("\"true\"", "\"true 1\"") + &job_lines(&[("new", "true")]);
    assert_eq!(
        executed(&lines, &[]),
        ["new", "plain"],
        "a changed command and a new job"
    );
    fs::write(fixture.skill_path("probe", "scripts/new.sh"), "true\n").unwrap();
    assert_eq!(executed(&lines, &[]).len(), 4, "a changed skill");
    assert_eq!(executed(&lines, &["--timeout", "50"]).len(), 4, "a changed limit");
    // Jobs that left the list keep their results and do not count.
    let answer = run_lines(&fixture, &job_lines(&[("new", "true")]), &["--timeout", "50"]);
    assert_eq!(
        (answer.code, &answer["jobs"], &answer["ok"], &answer["unlisted"]),
        (Some(0), &json!(1), &json!(1), &json!(3))
    );
}
