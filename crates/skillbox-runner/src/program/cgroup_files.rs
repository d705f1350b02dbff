//! The files of our own control group, in either version, opened at the start.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// The files of the group; none where the container shows none.
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
    /// A line `usage_usec N` among others.
    Lines,
}

const CGROUP_ROOT: &str = "/sys/fs/cgroup";

impl CgroupFiles {
    /// Opens the files that exist. Version 1 has a directory for each controller, version 2 one for all.
    pub fn open() -> Self {
        let first = |names: &[&str]| {
            names
                .iter()
                .find_map(|name| File::open(format!("{CGROUP_ROOT}/{name}")).ok())
        };
        let nanoseconds = first(&["cpuacct/cpuacct.usage", "cpu,cpuacct/cpuacct.usage"]);
        let lines = || first(&["cpu.stat"]).map(|file| (file, CpuFormat::Lines));
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

    /// CPU time of every process in the group since it exists.
    pub fn cpu_time(&self) -> Option<Duration> {
        let (file, form) = self.cpu.as_ref()?;
        match form {
            CpuFormat::Nanoseconds => Some(Duration::from_nanos(number(file)?)),
            CpuFormat::Lines => Some(Duration::from_micros(keyed_number(file, "usage_usec")?)),
        }
    }

    /// How often the kernel killed a process over the memory limit of the group.
    pub fn memory_kills(&self) -> Option<u64> {
        keyed_number(self.memory_events.as_ref()?, "oom_kill")
    }

    /// How often the kernel refused a process over the limit of the group.
    pub fn refused_processes(&self) -> Option<u64> {
        keyed_number(self.pids_events.as_ref()?, "max")
    }

    /// The most memory in use at once.
    pub fn memory_peak(&self) -> Option<u64> {
        number(self.memory_peak.as_ref()?)
    }

    /// The limit of memory.
    pub fn memory_limit(&self) -> Option<u64> {
        number(self.memory_limit.as_ref()?)
    }

    /// The limit of memory and swap together; version 2 counts swap alone.
    pub fn memory_and_swap_limit(&self) -> Option<u64> {
        let value = number(self.swap_limit.as_ref()?)?;
        let is_version_1 = File::open(format!("{CGROUP_ROOT}/memory/memory.limit_in_bytes")).is_ok();
        if is_version_1 {
            Some(value)
        } else {
            self.memory_limit()?.checked_add(value)
        }
    }

    /// The limit of processes.
    pub fn pids_limit(&self) -> Option<u64> {
        number(self.pids_limit.as_ref()?)
    }
}

fn read_text(file: &File) -> Option<String> {
    let mut buffer = [0; 2048];
    let count = file.read_at(&mut buffer, 0).ok()?;
    String::from_utf8(buffer[..count].to_vec()).ok()
}

fn number(file: &File) -> Option<u64> {
    read_text(file)?.trim().parse().ok()
}

/// The number after a key in a file of `key number` lines.
fn keyed_number(file: &File, name: &str) -> Option<u64> {
    let text = read_text(file)?;
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(key, _)| *key == name)?.1.trim().parse().ok()
}
