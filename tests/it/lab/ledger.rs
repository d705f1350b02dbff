//! Counting what the machine holds, before and after: processes, mounts, namespaces, control groups, files.
//!
//! Other programs come and go while tests run, other skillboxes and containers among them. Only what could be ours
//! counts: processes below this one, which adopts whatever loses its parent there, and their namespaces; control groups
//! of ours that no living stranger owns; mounts and files that stay after everything has settled.

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
                .filter(|line| {
                    ![" /proc/", " /sys/", " - overlay ", " - nsfs "]
                        .iter()
                        .any(|foreign| line.contains(foreign))
                })
                .collect(),
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
                let path = path.to_string_lossy();
                path.contains("skillbox")
                    && !["skillbox-it-", "skillbox-bench-", "skillbox-watch-"]
                        .iter()
                        .any(|other| path.contains(other))
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
        let family = family();
        let groups = directories_below(Path::new("/sys/fs/cgroup"));
        ledger.cgroups = groups.into_iter().filter(|path| may_be_ours(path, &family)).collect();
        for pid in &family {
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

/// Every process below this one.
fn family() -> BTreeSet<i32> {
    let all = all_processes();
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let mut family = BTreeSet::new();
    let mut parents = vec![own];
    while let Some(parent) = parents.pop() {
        let children = all.iter().filter(|(_, above, _)| *above == i64::from(parent));
        for (pid, ..) in children {
            if family.insert(*pid) {
                parents.push(*pid);
            }
        }
    }
    family
}

/// A control group that has the pid of its spawner in its name: ours, or one that nobody lives to remove.
fn may_be_ours(group: &Path, family: &BTreeSet<i32>) -> bool {
    let name = group.file_name().unwrap_or_default().to_string_lossy();
    let Some(owner) = name.strip_prefix("skillbox-").and_then(|rest| rest.split('-').nth(1)) else {
        return false;
    };
    let is_stranger = |pid: i32| !family.contains(&pid) && Path::new("/proc").join(pid.to_string()).exists();
    !owner.parse().is_ok_and(is_stranger)
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
