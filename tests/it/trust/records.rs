//! The audit log: killed processes, many processes at once, and every kind of damage.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::support::{RandomNumbers, repetitions, run_ids, seed, verified_records};
use crate::harness::{Fixture, HttpServer, kill_and_reap, wait_until};

fn ids(records: &[Value], kind: &str) -> BTreeSet<String> {
    let all = run_ids(records, kind);
    let distinct: BTreeSet<String> = all.iter().cloned().collect();
    assert_eq!(distinct.len(), all.len(), "{kind}: each run has one record");
    distinct
}

#[test]
fn every_run_of_a_killed_process_has_an_end() {
    let fixture = Fixture::new();
    let request = json!({"skill": "probe", "command": "sleep 0.03"});
    assert_eq!(fixture.request(request.clone()).run().code, Some(0), "the control");
    let mut numbers = RandomNumbers::new(seed());
    for _ in 0..repetitions("SKILLBOX_TRUST_KILLS", 25) {
        let mut child = fixture.request(request.clone()).spawn();
        // The time is part of the test: a process may be killed at any point.
        std::thread::sleep(Duration::from_micros(numbers.below(60_000) as u64));
        kill_and_reap(&mut child);
    }
    // The next start closes the runs of all killed processes.
    assert_eq!(fixture.request(request).run().code, Some(0));
    let records = verified_records(&fixture);
    let started = ids(&records, "started");
    assert!(started.len() >= 2, "the first and the last run");
    assert_eq!(started, ids(&records, "ended"));

    let listed = fixture.command(&["runs", "list", "--json", "--limit", "1000"]).run();
    let runs = listed.json()["runs"].as_array().unwrap();
    let lost = records.iter().filter(|record| record["status_code"] == "lost").count();
    let lost_in_history = runs.iter().filter(|run| run["status"] == "lost").count();
    assert!(
        runs.iter().all(|run| run["status"] != "running"),
        "{}",
        listed.describe()
    );
    assert!(lost_in_history >= lost, "{lost} lost runs: {}", listed.describe());
}

#[test]
fn every_run_of_a_killed_server_has_an_end() {
    let fixture = Fixture::new();
    let trust_dir = fixture.path_str("state/trust");
    let mut numbers = RandomNumbers::new(seed());
    for _ in 0..repetitions("SKILLBOX_TRUST_SERVER_KILLS", 3) {
        let (mut server, _) = HttpServer::start(&["--trust-dir", &trust_dir], &[]);
        let run = json!({"skill": "python-math", "command": "sleep 0.02"});
        for _ in 0..4 {
            let begun = server.request_json("", "POST", "/v1/runs", Some(&run));
            begun.expect_status(202);
        }
        let log = fixture.path("state/trust/audit/log-00000000.jsonl");
        wait_until("a run is recorded", || {
            fs::metadata(&log).is_ok_and(|log| log.len() > 0)
        });
        std::thread::sleep(Duration::from_micros(numbers.below(60_000) as u64));
        server.signal(Signal::KILL);
        assert!(!server.wait_for_exit().success());
    }
    assert_eq!(fixture.request(json!({"command": "true"})).run().code, Some(0));
    let records = verified_records(&fixture);
    assert!(run_ids(&records, "started").len() > 1);
    assert_eq!(ids(&records, "started"), ids(&records, "ended"));
}

#[test]
fn processes_append_to_one_log_without_breaking_its_chain() {
    let fixture = Fixture::new();
    let runs = repetitions("SKILLBOX_TRUST_APPENDS", 4);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..runs {
                    let answer = fixture.request(json!({"command": "true"})).run();
                    assert_eq!(answer.code, Some(0), "{}", answer.describe());
                }
            });
        }
    });
    let records = verified_records(&fixture);
    assert_eq!(records.len(), 2 * 8 * runs);
    assert_eq!(ids(&records, "started"), ids(&records, "ended"));
}

#[test]
fn a_record_has_the_facts_that_reviewers_ask_for_and_no_content() {
    let fixture = Fixture::new();
    fixture.add_host_file("in.txt", "the-content-of-the-input");
    let request = json!({
        "command": "cat ../../work/inputs/in.txt; cat; echo the-content-of-the-output > ../../out/o.txt; exit 3",
        "stdin": "the-content-of-stdin",
        "inputs": [{"from": format!("host://{}", fixture.path_str("host/in.txt"))}],
        "outputs": {"globs": ["out/**"]},
    });
    let answer = fixture.request(request).allow_host_inputs().run().expect_report();
    let records = verified_records(&fixture);
    let (start, end) = (&records[0], &records[1]);
    let text = format!("{start}{end}");
    for content in ["the-content-of-the-input", "the-content-of-stdin", fixture.canary()] {
        assert!(!text.contains(content), "{content}: {text}");
    }
    assert_eq!(start["process"]["uid"], answer["run_id"]);
    assert_eq!(start["unmapped"]["skill_digest"], answer["skill_digest"]);
    assert_eq!(start["unmapped"]["profile"], "default");
    assert!(
        start["unmapped"]["profile_digest"]
            .as_str()
            .unwrap()
            .starts_with("sha256:")
    );
    assert!(start["unmapped"]["limits"]["memory"].is_number() || start["unmapped"]["limits"]["memory"].is_string());
    assert!(!start["actor"]["user"]["name"].as_str().unwrap().is_empty());
    assert!(!start["device"]["hostname"].as_str().unwrap().is_empty());
    let inputs = start["unmapped"]["inputs"].as_array().unwrap();
    assert!(
        inputs[0]["sha256"].as_str().unwrap().starts_with("sha256:"),
        "{inputs:?}"
    );
    assert_eq!(end["exit_code"], 3);
    assert_eq!(end["unmapped"]["tier"], answer["enforcement"]["tier"]);
    let outputs = end["unmapped"]["outputs"].as_array().unwrap();
    assert_eq!(outputs[0]["name"], "out/o.txt");
    assert_eq!(outputs[0]["sha256"], answer["output_files"][0]["sha256"]);
    assert!(outputs[0]["sha256"].is_string());
}

#[test]
fn verify_names_the_first_bad_line() {
    let fixture = Fixture::new();
    for _ in 0..3 {
        assert_eq!(fixture.request(json!({"command": "true"})).run().code, Some(0));
    }
    let log = fixture.path("state/trust/audit/log-00000000.jsonl");
    let intact = fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = intact.lines().collect();
    let join = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let damages = [
        ("an edited record", intact.replacen("true", "fals", 1), 1),
        ("a removed record", join(&[&lines[..2], &lines[3..]].concat()), 3),
        (
            "swapped records",
            join(&[lines[0], lines[2], lines[1], lines[3], lines[4], lines[5]]),
            2,
        ),
        ("a repeated record", join(&[&lines[..2], &lines[1..]].concat()), 3),
        ("a cut end", join(&lines[..5]), 6),
        ("an empty file", String::new(), 1),
    ];
    for (what, text, line) in damages {
        fs::write(&log, text).unwrap();
        let verified = fixture.command(&["audit", "verify", "--json"]).run();
        assert_eq!(verified.code, Some(1), "{what}: {}", verified.describe());
        assert_eq!(verified.json()["bad"]["line"], line, "{what}: {}", verified.describe());
    }
    fs::write(&log, intact).unwrap();
    assert_eq!(fixture.command(&["audit", "verify"]).run().code, Some(0), "the control");
}

#[test]
fn a_removed_log_an_earlier_copy_and_a_copy_elsewhere() {
    let fixture = Fixture::new();
    let run = |code| {
        let run = fixture.request(json!({"command": "true"})).run();
        assert_eq!(run.code, Some(code), "{}", run.describe());
    };
    let verify = |arguments: &[&str]| {
        let verified = fixture
            .command(&[&["audit", "verify", "--json"], arguments].concat())
            .run();
        (verified.code, verified.json().clone())
    };
    run(0);
    let trust = fixture.path("state/trust");
    let files = ["audit/head", "audit/log-00000000.jsonl", "audit.chain"];
    let copies = files.map(|file| fs::read(trust.join(file)).unwrap());
    run(0);
    let (code, report) = verify(&[]);
    assert_eq!(
        (code, report["tags_checked"].as_bool()),
        (Some(0), Some(true)),
        "{report}"
    );
    let last = report["last"].as_str().unwrap();
    assert_eq!(verify(&["--expect", last]).0, Some(0), "the control");

    let copy = fixture.path("copy");
    fs::create_dir_all(copy.join("audit")).unwrap();
    fs::copy(trust.join(files[1]), copy.join(files[1])).unwrap();
    fs::copy(trust.join("host.pub"), copy.join("host.pub")).unwrap();
    let (copy, key) = (copy.to_str().unwrap(), copy.join("host.pub"));
    let arguments = ["--trust-dir", copy, "--key", key.to_str().unwrap(), "--expect", last];
    let (code, report) = verify(&arguments);
    assert_eq!(
        (code, report["tags_checked"].as_bool()),
        (Some(0), Some(false)),
        "{report}"
    );
    assert_eq!(report["records"], 4);

    for (file, copy) in files.iter().zip(&copies) {
        fs::write(trust.join(file), copy).unwrap();
    }
    assert_eq!(verify(&["--expect", last]).0, Some(1), "an earlier copy of all files");
    fs::remove_dir_all(trust.join("audit")).unwrap();
    let (code, report) = verify(&[]);
    assert_eq!(code, Some(1), "the log was removed: {report}");
    assert!(
        report["bad"]["problem"].as_str().unwrap().contains("missing"),
        "{report}"
    );
    run(125);
}
