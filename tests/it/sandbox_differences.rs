//! Ninety-six operations of typical scripts, on the host and in the sandbox. Each difference is documented.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use serde_json::json;

use crate::harness::{Fixture, ordinary_user, program, run_to_completion};
use crate::harness::{need_docker, with_docker};
use crate::workspace::root;

const DOCUMENT: &str = "docs/sandbox-differences.md";
const OPERATIONS_DEADLINE: Duration = Duration::from_secs(110);

/// The outcome of each operation, by its id.
type Outcomes = BTreeMap<String, String>;

#[test]
fn every_difference_from_the_host_is_documented() {
    check_differences("local");
}

#[test]
fn every_difference_of_containers_is_documented() {
    if need_docker() {
        with_docker(|| check_differences("docker"));
    }
}

#[track_caller]
fn check_differences(executor: &str) {
    let document = fs::read_to_string(root().join(DOCUMENT)).unwrap();
    let fixture = Fixture::new();
    let script = fs::read_to_string(root().join("tests/operations/operations.py")).unwrap();
    fixture.add_skill("operations", &[("scripts/operations.py", &script)]);
    let inside = outcomes_inside(&fixture);
    let on_host = outcomes_on_host(&fixture, &script);
    assert_eq!(on_host.len(), 96, "{on_host:?}");
    assert_eq!(
        on_host.keys().collect::<Vec<_>>(),
        inside.keys().collect::<Vec<_>>(),
        "both run the whole list"
    );
    let succeeded = on_host.values().filter(|outcome| *outcome == "ok").count();
    assert!(succeeded > 70, "the control fails: {on_host:?}");

    let documented = documented_ids(&document);
    let unknown: Vec<&String> = documented.iter().filter(|id| !on_host.contains_key(*id)).collect();
    assert!(
        unknown.is_empty(),
        "{DOCUMENT} names operations that do not exist: {unknown:?}"
    );
    let undocumented: Vec<String> = inside
        .iter()
        .filter(|(id, outcome)| is_worse(&on_host[*id], outcome) && !documented.contains(*id))
        .map(|(id, outcome)| format!("{id}: {} on the host, {outcome} inside ({executor})", on_host[id]))
        .collect();
    assert!(
        undocumented.is_empty(),
        "fix these differences, or add them with their reason to {DOCUMENT}:\n{}",
        undocumented.join("\n")
    );
}

/// Whether an operation does not do inside what it does on the host. What the host cannot do either may differ.
fn is_worse(on_host: &str, inside: &str) -> bool {
    inside != on_host && inside != "ok"
}

fn outcomes_inside(fixture: &Fixture) -> Outcomes {
    let request = json!({
        "skill": "operations",
        "command": "OPERATIONS_DIR=$WORK_DIR python3 scripts/operations.py",
        "timeout": 100,
    });
    let answer = fixture.request(request).run().expect_report();
    assert_eq!(answer["exit_code"], 0, "{}", answer.describe());
    parse_outcomes(answer.stdout())
}

/// Runs the operations as an ordinary user of the host, without a terminal, in directories like those of a workspace.
fn outcomes_on_host(fixture: &Fixture, script: &str) -> Outcomes {
    let skill = fixture.path("scratch/host/scripts");
    for directory in ["scratch/host/scripts", "scratch/host/home", "scratch/host/tmp"] {
        fs::create_dir_all(fixture.path(directory)).unwrap();
    }
    fs::write(skill.join("operations.py"), script).unwrap();
    let mut launcher = vec!["setsid".to_owned(), "--wait".to_owned()];
    if rustix::process::geteuid().is_root() {
        let (id, as_user) = ordinary_user();
        fixture.chown_to(id);
        launcher.extend(as_user);
    }
    let mut command = program(&launcher[0]);
    command
        .args(&launcher[1..])
        .args(["/usr/bin/python3", "scripts/operations.py"])
        .current_dir(fixture.path("scratch/host"))
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("LANG", "C.UTF-8")
        .env("HOME", fixture.path("scratch/host/home"))
        .env("TMPDIR", fixture.path("scratch/host/tmp"))
        .env("OPERATIONS_DIR", fixture.path("scratch/host/tmp"));
    let output = run_to_completion(&mut command, b"", OPERATIONS_DEADLINE);
    parse_outcomes(&String::from_utf8_lossy(&output.stdout))
}

fn parse_outcomes(lines: &str) -> Outcomes {
    let pairs = lines.lines().filter_map(|line| line.split_once(' '));
    pairs.map(|(id, outcome)| (id.to_owned(), outcome.to_owned())).collect()
}

/// The ids in the first column of the document's tables.
fn documented_ids(markdown: &str) -> BTreeSet<String> {
    let rows = markdown.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = rows.filter_map(|row| row.split('|').next());
    cells
        .flat_map(|cell| cell.split(','))
        .map(|id| id.trim().trim_matches('`').to_owned())
        .collect()
}

#[test]
fn the_table_of_the_document_is_understood() {
    let text = "| id | reason |\n|---|---|\n| `a-b`, `c` | because |\ntext `d`\n";
    assert_eq!(documented_ids(text), ["a-b", "c"].map(str::to_owned).into());
    assert!(is_worse("ok", "EPERM") && !is_worse("ENOENT", "ok") && !is_worse("EPERM", "EPERM"));
}
