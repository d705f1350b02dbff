//! The control files that report the resource usage of a group.
//!
//! The spawner opens them and sends the descriptors to the server, which needs neither paths nor privileges to read
//! them.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{Mode, OFlags, openat};

use super::limits::CgroupVersion;

/// The resource usage of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CgroupUsage {
    /// The CPU time of all processes that were in the group.
    pub cpu_time: Option<Duration>,
    /// The most memory in use at once, in bytes.
    pub peak_memory: Option<u64>,
    /// Whether the memory limit killed a process.
    pub memory_limit_hit: bool,
    /// Whether a fork failed because of the limit on processes.
    pub pids_limit_hit: bool,
}

/// The open control files that report the usage of a group.
#[derive(Debug, Default)]
pub(crate) struct UsageFiles {
    /// Indexed by the constants below. The descriptors are sent in the same order.
    files: [Option<OwnedFd>; 4],
}

const PEAK_MEMORY_INDEX: usize = 0;
const MEMORY_EVENTS_INDEX: usize = 1;
const PIDS_EVENTS_INDEX: usize = 2;
const CPU_TIME_INDEX: usize = 3;

impl UsageFiles {
    /// Opens the files that exist below the directories of the controllers.
    pub(super) fn open(
        version: CgroupVersion,
        memory: Option<BorrowedFd<'_>>,
        pids: Option<BorrowedFd<'_>>,
        cpu: Option<BorrowedFd<'_>>,
    ) -> Self {
        let (peak, events, cpu_time) = match version {
            CgroupVersion::V1 => ("memory.max_usage_in_bytes", "memory.oom_control", "cpuacct.usage"),
            CgroupVersion::V2 => ("memory.peak", "memory.events", "cpu.stat"),
        };
        let open = |directory: Option<BorrowedFd<'_>>, name: &str| {
            openat(directory?, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()
        };
        Self {
            files: [
                open(memory, peak),
                open(memory, events),
                open(pids, "pids.events"),
                open(cpu, cpu_time),
            ],
        }
    }

    /// The open descriptors, with a bit mask of the indices of their files.
    pub fn to_fds(&self) -> (u8, Vec<BorrowedFd<'_>>) {
        let mask = (0..4)
            .filter(|index| self.files[*index].is_some())
            .fold(0, |mask, index| mask | 1 << index);
        (mask, self.files.iter().flatten().map(AsFd::as_fd).collect())
    }

    /// Rebuilds the files from the mask and the descriptors of [`Self::to_fds`].
    pub fn from_fds(mask: u8, descriptors: impl IntoIterator<Item = OwnedFd>) -> Self {
        let mut descriptors = descriptors.into_iter();
        let mut usage = Self::default();
        for (index, file) in usage.files.iter_mut().enumerate() {
            if mask & (1 << index) != 0 {
                *file = descriptors.next();
            }
        }
        usage
    }

    /// CPU time so far.
    pub fn cpu_time(&self) -> Option<Duration> {
        let text = self.read_file(CPU_TIME_INDEX)?;
        // Version 2 reports microseconds after a key, version 1 a single number of nanoseconds.
        match keyed_number(&text, "usage_usec") {
            Some(micros) => Some(Duration::from_micros(micros)),
            None => text.trim().parse().ok().map(Duration::from_nanos),
        }
    }

    /// The usage so far.
    pub fn read(&self) -> CgroupUsage {
        let has_occurred = |index: usize, key: &str| {
            self.read_file(index)
                .and_then(|text| keyed_number(&text, key))
                .is_some_and(|count| count > 0)
        };
        CgroupUsage {
            cpu_time: self.cpu_time(),
            peak_memory: self
                .read_file(PEAK_MEMORY_INDEX)
                .and_then(|text| text.trim().parse().ok()),
            memory_limit_hit: has_occurred(MEMORY_EVENTS_INDEX, "oom_kill"),
            pids_limit_hit: has_occurred(PIDS_EVENTS_INDEX, "max"),
        }
    }

    fn read_file(&self, index: usize) -> Option<String> {
        let mut buffer = [0; 1024];
        let length = rustix::io::pread(self.files[index].as_ref()?, &mut buffer, 0).ok()?;
        Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
    }
}

/// The number after a key in a text of `key number` lines.
fn keyed_number(text: &str, key: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_files_of_both_versions_are_read() {
        for (version, files) in [
            (
                CgroupVersion::V1,
                [
                    ("memory.max_usage_in_bytes", "4096\n"),
                    ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"),
                    ("pids.events", "max 0\n"),
                    ("cpuacct.usage", "1500000\n"),
                ],
            ),
            (
                CgroupVersion::V2,
                [
                    ("memory.peak", "4096\n"),
                    ("memory.events", "low 0\nmax 9\noom 1\noom_kill 1\n"),
                    ("pids.events", "max 0\n"),
                    ("cpu.stat", "usage_usec 1500\nuser_usec 1000\n"),
                ],
            ),
        ] {
            let directory = tempfile::tempdir().unwrap();
            for (name, content) in files {
                std::fs::write(directory.path().join(name), content).unwrap();
            }
            let group = std::fs::File::open(directory.path()).unwrap();
            let opened = UsageFiles::open(version, Some(group.as_fd()), Some(group.as_fd()), Some(group.as_fd()));
            let (mask, sent) = opened.to_fds();
            let received: Vec<OwnedFd> = sent.iter().map(|file| file.try_clone_to_owned().unwrap()).collect();
            assert_eq!(
                UsageFiles::from_fds(mask, received).read(),
                CgroupUsage {
                    cpu_time: Some(Duration::from_micros(1500)),
                    peak_memory: Some(4096),
                    memory_limit_hit: true,
                    pids_limit_hit: false,
                }
            );
        }
    }
}
