//! Reading what a batch wrote.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

/// The results by job id. Fails when a line is not JSON or a job has two lines.
#[track_caller]
pub fn read_results(out: &Path) -> BTreeMap<String, Value> {
    let text = fs::read_to_string(out.join("results.jsonl")).unwrap_or_default();
    let mut results = BTreeMap::new();
    for line in text.lines() {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let id = value["id"].as_str().unwrap().to_owned();
        assert!(results.insert(id.clone(), value).is_none(), "{id} has two results");
    }
    results
}

/// The run ids by job id: a job that ran again has another one.
pub fn run_ids(out: &Path) -> BTreeMap<String, String> {
    let ids = read_results(out)
        .into_iter()
        .map(|(id, result)| (id, result["run_id"].as_str().unwrap_or("none").to_owned()));
    ids.collect()
}

/// The summary file.
pub fn summary(out: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(out.join("summary.json")).unwrap()).unwrap()
}

/// Lines of a job list for the skill `probe`: the id and the command of each job.
pub fn job_lines(jobs: &[(&str, &str)]) -> String {
    jobs.iter()
        .map(|(id, command)| format!("{}\n", json!({"id": id, "skill": "probe", "command": command})))
        .collect()
}
