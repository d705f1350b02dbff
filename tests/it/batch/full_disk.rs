//! A full disk: the batch halts, and what is durable stays.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

use serde_json::json;

use super::results::{job_lines, read_results};
use crate::harness::{Fixture, need_root, program, run_to_completion};

/// A small file system that the test mounts, unmounted when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(path: PathBuf, size: &str) -> Self {
        fs::create_dir_all(&path).unwrap();
        let disk = Self(path);
        disk.call("mount", &["-t", "tmpfs", "-o", &format!("size={size}"), "none"]);
        disk
    }

    fn resize(&self, size: &str) {
        self.call("mount", &["-o", &format!("remount,size={size}")]);
    }

    fn call(&self, name: &str, args: &[&str]) {
        let mut command = program(name);
        command.args(args).arg(&self.0);
        let output = run_to_completion(&mut command, b"", Duration::from_secs(20));
        assert!(
            output.status.success(),
            "{name} {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.call("umount", &[]);
        }
    }
}

fn assert_files_are_complete(out: &Path) {
    for (id, result) in read_results(out) {
        for file in result["output_files"].as_array().unwrap() {
            let content = fs::read(out.join("jobs").join(&id).join(file["name"].as_str().unwrap())).unwrap();
            let digest: String = Sha256::digest(&content)
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            assert_eq!(file["sha256"], format!("sha256:{digest}"), "{id}");
        }
    }
}

#[test]
fn a_full_disk_halts_the_batch_and_keeps_what_is_durable() {
    if !need_root() {
        return;
    }
    let fixture = Fixture::new();
    let disk = SmallDisk::mount(fixture.path("disk"), "3m");
    let out = fixture.path("disk/results");
    let out_str = out.to_str().unwrap();
    let jobs: Vec<(String, &str)> = (0..30)
        .map(|index| (format!("job{index}"), "head -c 300000 /dev/urandom > out/data"))
        .collect();
    let jobs: Vec<(&str, &str)> = jobs.iter().map(|(id, command)| (id.as_str(), *command)).collect();
    let args = ["batch", "run", "-", "--out", out_str, "--json", "--resume"];
    let run = || fixture.command(&args).stdin(job_lines(&jobs)).run();
    let answer = run();
    assert_eq!(answer.code, Some(124), "{}", answer.describe());
    assert_eq!(answer["halted"]["reason"], "storage", "{}", answer.describe());
    let durable = read_results(&out);
    assert!(durable.len() >= 5 && durable.len() < jobs.len(), "{}", durable.len());
    assert!(
        durable.values().all(|result| result["status"] == "ok"),
        "a full disk is not the job's failure"
    );
    assert_files_are_complete(&out);

    disk.resize("64m");
    let answer = run();
    assert_eq!(
        (answer.code, &answer["ok"]),
        (Some(0), &json!(jobs.len())),
        "{}",
        answer.describe()
    );
    assert_eq!(answer["resumed"], durable.len());
    assert_files_are_complete(&out);
}
