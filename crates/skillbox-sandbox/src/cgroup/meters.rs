//! The files of a group that tell what it saw, opened ahead, so that whoever holds them needs no path and no rights.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{Mode, OFlags, openat};

use crate::plan::CgroupVersion;
use crate::spawner::protocol::Reaped;

/// What a group measures, in the order in which descriptors are passed on.
#[derive(Debug, Default)]
pub(crate) struct Meters {
    files: [Option<OwnedFd>; 4],
}

const PEAK: usize = 0;
const MEMORY_EVENTS: usize = 1;
const PIDS_EVENTS: usize = 2;
const CPU: usize = 3;

impl Meters {
    /// Opens what there is below the directories of a group, each given with its version's place.
    pub(super) fn open(
        version: CgroupVersion,
        memory: Option<BorrowedFd<'_>>,
        pids: Option<BorrowedFd<'_>>,
        cpu: Option<BorrowedFd<'_>>,
    ) -> Self {
        let (peak, events, clock) = match version {
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
                open(cpu, clock),
            ],
        }
    }

    /// The descriptors that there are, and a mask that says which.
    pub fn give(&self) -> (u8, Vec<BorrowedFd<'_>>) {
        let mask = (0..4)
            .filter(|index| self.files[*index].is_some())
            .fold(0, |mask, index| mask | 1 << index);
        (mask, self.files.iter().flatten().map(AsFd::as_fd).collect())
    }

    /// The other side of [`Self::give`].
    pub fn take(mask: u8, descriptors: impl IntoIterator<Item = OwnedFd>) -> Self {
        let mut descriptors = descriptors.into_iter();
        let mut meters = Self::default();
        for (index, file) in meters.files.iter_mut().enumerate() {
            if mask & (1 << index) != 0 {
                *file = descriptors.next();
            }
        }
        meters
    }

    /// CPU time so far.
    pub fn cpu(&self) -> Option<Duration> {
        let text = self.read(CPU)?;
        match keyed(&text, "usage_usec") {
            Some(micros) => Some(Duration::from_micros(micros)),
            None => text.trim().parse().ok().map(Duration::from_nanos),
        }
    }

    /// Everything, over what is known already.
    pub fn account(&self, reaped: &mut Reaped) {
        if let Some(peak) = self.read(PEAK).and_then(|text| text.trim().parse().ok()) {
            reaped.peak_memory = Some(peak);
        }
        let happened = |file: usize, key: &str| {
            self.read(file)
                .and_then(|text| keyed(&text, key))
                .is_some_and(|count| count > 0)
        };
        reaped.memory_hit |= happened(MEMORY_EVENTS, "oom_kill");
        reaped.pids_hit |= happened(PIDS_EVENTS, "max");
        if let Some(cpu) = self.cpu() {
            reaped.cpu = cpu;
        }
    }

    fn read(&self, file: usize) -> Option<String> {
        let mut buffer = [0; 1024];
        let length = rustix::io::pread(self.files[file].as_ref()?, &mut buffer, 0).ok()?;
        Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
    }
}

/// The number behind a key in a text of `key number` lines.
fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meters_of_both_versions_are_read() {
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
            let opened = Meters::open(version, Some(group.as_fd()), Some(group.as_fd()), Some(group.as_fd()));
            let (mask, given) = opened.give();
            let given: Vec<OwnedFd> = given.iter().map(|file| file.try_clone_to_owned().unwrap()).collect();
            let mut reaped = Reaped::default();
            Meters::take(mask, given).account(&mut reaped);
            assert_eq!(reaped.peak_memory, Some(4096));
            assert!(reaped.memory_hit && !reaped.pids_hit);
            assert_eq!(reaped.cpu, Duration::from_micros(1500));
        }
    }
}
