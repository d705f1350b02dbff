//! An inventory of what the machine holds, compared before and after: processes, mounts, namespaces, control groups, files.
//!
//! Other programs come and go while tests run, other skillboxes and containers among them. The inventory holds only
//! what can belong to this test: processes below this one, which adopts the orphans among them, and their namespaces;
//! control groups of skillbox without a living owner elsewhere; mounts and files that stay after clean-up.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::machine_load::is_overdue;
use super::process::{all_processes, orphans};

/// How long clean-up may take after a run on an idle machine.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(4);

/// What the machine holds at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostInventory {
    processes: BTreeSet<String>,
    mounts: BTreeSet<String>,
    namespaces: BTreeSet<String>,
    cgroups: BTreeSet<PathBuf>,
    temporary_files: BTreeSet<PathBuf>,
    descriptor_count: usize,
    ipc_objects: BTreeSet<String>,
}

impl HostInventory {
    /// Takes the inventory.
    pub fn take() -> Self {
        let mut inventory = Self {
            mounts: read_lines("/proc/self/mountinfo")
                .into_iter()
                .filter(|line| {
                    ![" /proc/", " /sys/", " - overlay ", " - nsfs "]
                        .iter()
                        .any(|foreign| line.contains(foreign))
                })
                .collect(),
            descriptor_count: fs::read_dir("/proc/self/fd").map_or(0, Iterator::count),
            ..Self::default()
        };
        for place in ["/tmp", "/var/tmp", "/dev/shm", "/run"] {
            let entries = fs::read_dir(place)
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.path());
            let is_ours = |path: &PathBuf| {
                let path = path.to_string_lossy();
                path.contains("skillbox")
                    && !["skillbox-it-", "skillbox-bench-", "skillbox-watch-"]
                        .iter()
                        .any(|other| path.contains(other))
            };
            inventory.temporary_files.extend(entries.filter(is_ours));
        }
        for kind in ["shm", "msg", "sem"] {
            let rows = read_lines(&format!("/proc/sysvipc/{kind}"));
            let ids = rows.iter().filter_map(|row| row.split_whitespace().nth(1));
            inventory.ipc_objects.extend(ids.map(|id| format!("{kind} {id}")));
        }
        let skillbox_inode = fs::metadata(env!("CARGO_BIN_EXE_skillbox"))
            .map(|meta| meta.ino())
            .unwrap_or(0);
        let own_pid_namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let descendants = descendants();
        let groups = directories_below(Path::new("/sys/fs/cgroup"));
        inventory.cgroups = groups
            .into_iter()
            .filter(|path| may_be_ours(path, &descendants))
            .collect();
        for pid in &descendants {
            let is_skillbox = fs::metadata(format!("/proc/{pid}/exe")).is_ok_and(|meta| meta.ino() == skillbox_inode);
            let is_sandboxed =
                fs::read_link(format!("/proc/{pid}/ns/pid")).is_ok_and(|namespace| namespace != own_pid_namespace);
            if is_skillbox || is_sandboxed {
                let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                inventory
                    .processes
                    .insert(format!("{pid} {}", String::from_utf8_lossy(&line).replace('\0', " ")));
            }
            for entry in fs::read_dir(format!("/proc/{pid}/ns")).into_iter().flatten().flatten() {
                let link = fs::read_link(entry.path()).unwrap_or_default();
                inventory.namespaces.insert(link.to_string_lossy().into_owned());
            }
        }
        inventory
            .processes
            .extend(orphans().into_iter().map(|pid| format!("orphan {pid}")));
        inventory
    }

    /// Waits until the machine holds nothing that this inventory lacks, and returns what stays otherwise.
    pub fn growth_after_cleanup(&self) -> Vec<String> {
        let begin = Instant::now();
        loop {
            let growth = self.difference(&Self::take());
            if growth.is_empty() || is_overdue(begin, CLEANUP_TIMEOUT) {
                return growth;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn difference(&self, later: &Self) -> Vec<String> {
        fn added(kind: &str, before: &BTreeSet<String>, after: &BTreeSet<String>) -> Vec<String> {
            after.difference(before).map(|new| format!("{kind} {new}")).collect()
        }
        fn added_paths(kind: &str, before: &BTreeSet<PathBuf>, after: &BTreeSet<PathBuf>) -> Vec<String> {
            let new = after.difference(before);
            new.map(|new| format!("{kind} {}", new.display())).collect()
        }
        let mut growth = [
            added("process", &self.processes, &later.processes),
            added("mount", &self.mounts, &later.mounts),
            added("namespace", &self.namespaces, &later.namespaces),
            added_paths("control group", &self.cgroups, &later.cgroups),
            added_paths("file", &self.temporary_files, &later.temporary_files),
            added("ipc", &self.ipc_objects, &later.ipc_objects),
        ]
        .concat();
        if later.descriptor_count > self.descriptor_count {
            let count = later.descriptor_count - self.descriptor_count;
            growth.push(format!("descriptors {count} more"));
        }
        growth
    }
}

/// Every process below this one.
fn descendants() -> BTreeSet<i32> {
    let all = all_processes();
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let mut descendants = BTreeSet::new();
    let mut parents = vec![own];
    while let Some(parent) = parents.pop() {
        let children = all.iter().filter(|(_, above, _)| *above == i64::from(parent));
        for (pid, ..) in children {
            if descendants.insert(*pid) {
                parents.push(*pid);
            }
        }
    }
    descendants
}

/// Whether a control group, which has the pid of its spawner in its name, is ours or has no living owner.
fn may_be_ours(group: &Path, descendants: &BTreeSet<i32>) -> bool {
    let name = group.file_name().unwrap_or_default().to_string_lossy();
    let Some(owner) = name.strip_prefix("skillbox-").and_then(|rest| rest.split('-').nth(1)) else {
        return false;
    };
    let is_foreign = |pid: i32| !descendants.contains(&pid) && Path::new("/proc").join(pid.to_string()).exists();
    !owner.parse().is_ok_and(is_foreign)
}

fn read_lines(path: &str) -> Vec<String> {
    fs::read_to_string(path)
        .unwrap_or_default()
        .lines()
        .map(str::to_owned)
        .collect()
}

fn directories_below(dir: &Path) -> BTreeSet<PathBuf> {
    let mut all = BTreeSet::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                pending.push(entry.path());
                all.insert(entry.path());
            }
        }
    }
    all
}
