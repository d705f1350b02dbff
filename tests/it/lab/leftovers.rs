//! What must not be left of one test's world: processes, mounts, temporary files.

use std::path::Path;
use std::time::{Duration, Instant};

use super::process::{end, orphans};

/// How long the kernel may take to finish what was killed.
const PATIENCE: Duration = Duration::from_secs(2);

/// Fails when something of a world is still there.
pub fn refuse(top: &Path) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = found(top);
        if left.is_empty() {
            return;
        }
        if Instant::now() > deadline {
            orphans().into_iter().for_each(end);
            panic!("left behind: {}", left.join("; "));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn found(top: &Path) -> Vec<String> {
    let mut left: Vec<String> = orphans().into_iter().map(told_process).collect();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let ours = mounts.lines().filter(|line| line.contains(top.to_str().unwrap()));
    left.extend(ours.map(|line| format!("mount {line}")));
    let temporary = std::fs::read_dir(top.join("tmp")).into_iter().flatten().flatten();
    left.extend(temporary.map(|entry| format!("temporary {}", entry.path().display())));
    left
}

fn told_process(pid: i32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    format!("process {pid} {}", String::from_utf8_lossy(&line).replace('\0', " "))
}
