//! Counting what the machine holds, before and after: processes, mounts, namespaces, control groups, files.
//!
//! Other programs come and go while tests run. Only what could be ours counts: processes in foreign namespaces or of our
//! program, mounts, namespaces and control groups that stay after everything has settled.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::process::{all_processes, orphans};

/// How long clean-up may take after an answer.
const SETTLING: Duration = Duration::from_secs(4);

/// What there is at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    processes: BTreeSet<String>,
    mounts: BTreeSet<String>,
    namespaces: BTreeSet<String>,
    cgroups: BTreeSet<PathBuf>,
    temporary: BTreeSet<PathBuf>,
    descriptors: usize,
    shared_memory: BTreeSet<String>,
}

impl Ledger {
    /// Counts.
    pub fn now() -> Self {
        let mut ledger = Self {
            mounts: lines("/proc/self/mountinfo")
                .into_iter()
                .filter(|line| !line.contains(" /proc/"))
                .collect(),
            cgroups: directories_below(Path::new("/sys/fs/cgroup")),
            descriptors: fs::read_dir("/proc/self/fd").map_or(0, Iterator::count),
            ..Self::default()
        };
        for place in ["/tmp", "/var/tmp", "/dev/shm", "/run"] {
            let ours = fs::read_dir(place)
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.path());
            let named = |path: &PathBuf| {
                path.to_string_lossy().contains("skillbox") && !path.to_string_lossy().contains("skillbox-it-")
            };
            ledger.temporary.extend(ours.filter(named));
        }
        for kind in ["shm", "msg", "sem"] {
            let rows = lines(&format!("/proc/sysvipc/{kind}"));
            let keys = rows.iter().filter_map(|row| row.split_whitespace().nth(1));
            ledger.shared_memory.extend(keys.map(|key| format!("{kind} {key}")));
        }
        let own_exe = fs::metadata(env!("CARGO_BIN_EXE_skillbox"))
            .map(|meta| meta.ino())
            .unwrap_or(0);
        let own_pids = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        for (pid, ..) in all_processes() {
            let is_ours = fs::metadata(format!("/proc/{pid}/exe")).is_ok_and(|meta| meta.ino() == own_exe);
            let is_inside = fs::read_link(format!("/proc/{pid}/ns/pid")).is_ok_and(|pids| pids != own_pids);
            if is_ours || is_inside {
                let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                ledger
                    .processes
                    .insert(format!("{pid} {}", String::from_utf8_lossy(&line).replace('\0', " ")));
            }
            for entry in fs::read_dir(format!("/proc/{pid}/ns")).into_iter().flatten().flatten() {
                let link = fs::read_link(entry.path()).unwrap_or_default();
                ledger.namespaces.insert(link.to_string_lossy().into_owned());
            }
        }
        ledger
            .processes
            .extend(orphans().into_iter().map(|pid| format!("orphan {pid}")));
        ledger
    }

    /// Waits until nothing is there that was not there before, and tells what stays otherwise.
    pub fn growth(&self) -> Vec<String> {
        let end = Instant::now() + SETTLING;
        loop {
            let growth = self.difference(&Self::now());
            if growth.is_empty() || Instant::now() > end {
                return growth;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn difference(&self, later: &Self) -> Vec<String> {
        let mut growth = Vec::new();
        let mut tell = |kind: &str, what: String| growth.push(format!("{kind} {what}"));
        later
            .processes
            .difference(&self.processes)
            .for_each(|new| tell("process", new.clone()));
        later
            .mounts
            .difference(&self.mounts)
            .for_each(|new| tell("mount", new.clone()));
        later
            .namespaces
            .difference(&self.namespaces)
            .for_each(|new| tell("namespace", new.clone()));
        later
            .cgroups
            .difference(&self.cgroups)
            .for_each(|new| tell("control group", new.display().to_string()));
        later
            .temporary
            .difference(&self.temporary)
            .for_each(|new| tell("file", new.display().to_string()));
        later
            .shared_memory
            .difference(&self.shared_memory)
            .for_each(|new| tell("ipc", new.clone()));
        if later.descriptors > self.descriptors {
            tell("descriptors", format!("{} more", later.descriptors - self.descriptors));
        }
        growth
    }
}

fn lines(path: &str) -> Vec<String> {
    fs::read_to_string(path)
        .unwrap_or_default()
        .lines()
        .map(str::to_owned)
        .collect()
}

fn directories_below(dir: &Path) -> BTreeSet<PathBuf> {
    let mut all = BTreeSet::new();
    let mut waiting = vec![dir.to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(entry.path());
                all.insert(entry.path());
            }
        }
    }
    all
}
