//! What our own control group tells, in either version, read through descriptors that are held from the start.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// The files of the group; none where the container shows none.
pub struct Meters {
    cpu: Option<(File, CpuForm)>,
    memory_limit: Option<File>,
    swap_limit: Option<File>,
    memory_events: Option<File>,
    memory_peak: Option<File>,
    pids_limit: Option<File>,
    pids_events: Option<File>,
}

#[derive(Clone, Copy)]
enum CpuForm {
    /// One number, in nanoseconds.
    Nanoseconds,
    /// A line `usage_usec N` among others.
    Lines,
}

const TOP: &str = "/sys/fs/cgroup";

impl Meters {
    /// Opens what there is. Version 1 has a directory for each controller, version 2 one for all.
    pub fn open() -> Self {
        let first = |names: &[&str]| names.iter().find_map(|name| File::open(format!("{TOP}/{name}")).ok());
        let nanoseconds = first(&["cpuacct/cpuacct.usage", "cpu,cpuacct/cpuacct.usage"]);
        let lines = || first(&["cpu.stat"]).map(|file| (file, CpuForm::Lines));
        Self {
            cpu: nanoseconds.map(|file| (file, CpuForm::Nanoseconds)).or_else(lines),
            memory_limit: first(&["memory/memory.limit_in_bytes", "memory.max"]),
            swap_limit: first(&["memory/memory.memsw.limit_in_bytes", "memory.swap.max"]),
            memory_events: first(&["memory/memory.oom_control", "memory.events"]),
            memory_peak: first(&["memory/memory.max_usage_in_bytes", "memory.peak"]),
            pids_limit: first(&["pids/pids.max", "pids.max"]),
            pids_events: first(&["pids/pids.events", "pids.events"]),
        }
    }

    /// CPU time of everything in the group since it was made.
    pub fn cpu(&self) -> Option<Duration> {
        let (file, form) = self.cpu.as_ref()?;
        match form {
            CpuForm::Nanoseconds => Some(Duration::from_nanos(number(file)?)),
            CpuForm::Lines => Some(Duration::from_micros(line(file, "usage_usec")?)),
        }
    }

    /// How often the kernel killed something for the group's memory.
    pub fn memory_kills(&self) -> u64 {
        self.memory_events
            .as_ref()
            .and_then(|file| line(file, "oom_kill"))
            .unwrap_or(0)
    }

    /// How often it refused a process.
    pub fn refused_processes(&self) -> u64 {
        self.pids_events
            .as_ref()
            .and_then(|file| line(file, "max"))
            .unwrap_or(0)
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
        let is_version_1 = File::open(format!("{TOP}/memory/memory.limit_in_bytes")).is_ok();
        if is_version_1 {
            Some(value)
        } else {
            Some(self.memory_limit()?.saturating_add(value))
        }
    }

    /// The limit of processes.
    pub fn pids_limit(&self) -> Option<u64> {
        number(self.pids_limit.as_ref()?)
    }
}

fn text(file: &File) -> Option<String> {
    let mut buffer = [0; 2048];
    let count = file.read_at(&mut buffer, 0).ok()?;
    String::from_utf8(buffer[..count].to_vec()).ok()
}

fn number(file: &File) -> Option<u64> {
    text(file)?.trim().parse().ok()
}

fn line(file: &File, name: &str) -> Option<u64> {
    let text = text(file)?;
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(key, _)| *key == name)?.1.trim().parse().ok()
}
