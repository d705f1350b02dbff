//! The files of the container's control group, in cgroup v1 or v2.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// The open files of the control group; none for those that the container does not have.
pub struct CgroupFiles {
    cpu: Option<(File, CpuFormat)>,
    memory_limit: Option<File>,
    swap_limit: Option<File>,
    memory_events: Option<File>,
    memory_peak: Option<File>,
    pids_limit: Option<File>,
    pids_events: Option<File>,
}

#[derive(Clone, Copy)]
enum CpuFormat {
    /// One number, in nanoseconds.
    Nanoseconds,
    /// Lines of a key and a number, one of them `usage_usec`.
    KeyedLines,
}

const CGROUP_ROOT: &str = "/sys/fs/cgroup";

impl CgroupFiles {
    /// Opens the files that exist. Version 1 has a directory for each controller, version 2 a single directory.
    pub fn open() -> Self {
        let first = |names: &[&str]| {
            names
                .iter()
                .find_map(|name| File::open(format!("{CGROUP_ROOT}/{name}")).ok())
        };
        let nanoseconds = first(&["cpuacct/cpuacct.usage", "cpu,cpuacct/cpuacct.usage"]);
        let lines = || first(&["cpu.stat"]).map(|file| (file, CpuFormat::KeyedLines));
        Self {
            cpu: nanoseconds.map(|file| (file, CpuFormat::Nanoseconds)).or_else(lines),
            memory_limit: first(&["memory/memory.limit_in_bytes", "memory.max"]),
            swap_limit: first(&["memory/memory.memsw.limit_in_bytes", "memory.swap.max"]),
            memory_events: first(&["memory/memory.oom_control", "memory.events"]),
            memory_peak: first(&["memory/memory.max_usage_in_bytes", "memory.peak"]),
            pids_limit: first(&["pids/pids.max", "pids.max"]),
            pids_events: first(&["pids/pids.events", "pids.events"]),
        }
    }

    /// The CPU time of all processes in the group since its creation.
    pub fn cpu_time(&self) -> Option<Duration> {
        let (file, format) = self.cpu.as_ref()?;
        match format {
            CpuFormat::Nanoseconds => Some(Duration::from_nanos(read_number(file)?)),
            CpuFormat::KeyedLines => Some(Duration::from_micros(read_keyed_number(file, "usage_usec")?)),
        }
    }

    /// How often the kernel killed a process because of the memory limit of the group.
    pub fn oom_kill_count(&self) -> Option<u64> {
        read_keyed_number(self.memory_events.as_ref()?, "oom_kill")
    }

    /// How often the kernel refused to create a process because of the process limit of the group.
    pub fn failed_fork_count(&self) -> Option<u64> {
        read_keyed_number(self.pids_events.as_ref()?, "max")
    }

    /// The peak memory use, in bytes.
    pub fn memory_peak(&self) -> Option<u64> {
        read_number(self.memory_peak.as_ref()?)
    }

    /// The limit of memory.
    pub fn memory_limit(&self) -> Option<u64> {
        read_number(self.memory_limit.as_ref()?)
    }

    /// The limit of memory and swap together. The file of version 2 contains the limit of swap alone.
    pub fn memory_and_swap_limit(&self) -> Option<u64> {
        let value = read_number(self.swap_limit.as_ref()?)?;
        let is_version_1 = File::open(format!("{CGROUP_ROOT}/memory/memory.limit_in_bytes")).is_ok();
        if is_version_1 {
            Some(value)
        } else {
            self.memory_limit()?.checked_add(value)
        }
    }

    /// The limit of processes.
    pub fn pids_limit(&self) -> Option<u64> {
        read_number(self.pids_limit.as_ref()?)
    }
}

fn read_text(file: &File) -> Option<String> {
    let mut buffer = [0; 2048];
    let count = file.read_at(&mut buffer, 0).ok()?;
    String::from_utf8(buffer[..count].to_vec()).ok()
}

fn read_number(file: &File) -> Option<u64> {
    read_text(file)?.trim().parse().ok()
}

/// The number after a key in a file of `key number` lines.
fn read_keyed_number(file: &File, name: &str) -> Option<u64> {
    let text = read_text(file)?;
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(key, _)| *key == name)?.1.trim().parse().ok()
}
