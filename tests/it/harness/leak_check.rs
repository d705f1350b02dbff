//! Checks that a test left no processes, mounts or temporary files behind.

use std::path::Path;
use std::time::{Duration, Instant};

use super::machine_load::is_overdue;
use super::process::{kill_orphan, orphans};

/// How long an idle kernel may take to remove killed processes and their mounts.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(2);

/// Fails when something of the test whose files are below `root_dir` is still there.
pub fn assert_no_leaks(root_dir: &Path) {
    let begin = Instant::now();
    loop {
        let leaks = find_leaks(root_dir);
        if leaks.is_empty() {
            return;
        }
        if is_overdue(begin, CLEANUP_TIMEOUT) {
            orphans().into_iter().for_each(kill_orphan);
            panic!("left behind: {}", leaks.join("; "));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn find_leaks(root_dir: &Path) -> Vec<String> {
    let mut leaks: Vec<String> = orphans().into_iter().map(describe_process).collect();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let ours = mounts.lines().filter(|line| line.contains(root_dir.to_str().unwrap()));
    leaks.extend(ours.map(|line| format!("mount {line}")));
    let temporary = std::fs::read_dir(root_dir.join("tmp")).into_iter().flatten().flatten();
    leaks.extend(temporary.map(|entry| format!("temporary file {}", entry.path().display())));
    leaks
}

fn describe_process(pid: i32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    format!("process {pid} {}", String::from_utf8_lossy(&line).replace('\0', " "))
}
