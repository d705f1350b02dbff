//! The skills as the runner wrote them: tells which of their files the command has changed.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{FileType, Stat};
use rustix::time::{ClockId, clock_gettime};
use skillbox_runner::{Job, WalkOptions, walk_tree};

use super::workspace::WORKSPACE;

/// The directory of all skills.
const SKILLS: &[u8] = b"skills";
const SKILLS_PATH: &str = "/workspace/skills";
/// A tick of the kernel's clock takes at most 10 ms.
const MAX_CLOCK_CHECKS: usize = 20;
const CLOCK_CHECK_INTERVAL: Duration = Duration::from_millis(1);
const MAX_ENTRIES: u64 = 1_000_000;

/// What identifies the content of a file: a command can set none of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileIdentity {
    inode: u64,
    changed: (i64, i64),
}

impl FileIdentity {
    fn of(stat: &Stat) -> Self {
        Self {
            inode: stat.st_ino,
            changed: (stat.st_ctime, stat.st_ctime_nsec as i64),
        }
    }
}

/// The skills as the runner wrote them.
#[derive(Debug, Default)]
pub struct SentSkills {
    writable_directories: Vec<Vec<u8>>,
    files: HashMap<Vec<u8>, FileIdentity>,
    /// What the skills used before the command.
    usage_before: Usage,
}

/// The use of a file system.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    bytes: u64,
    inodes: u64,
}

impl Usage {
    fn of(path: &str) -> io::Result<Self> {
        let space = rustix::fs::statvfs(path)?;
        Ok(Self {
            bytes: space
                .f_blocks
                .saturating_sub(space.f_bfree)
                .saturating_mul(space.f_frsize),
            inodes: space.f_files.saturating_sub(space.f_ffree),
        })
    }
}

impl SentSkills {
    /// Records the skills that the command may change. Waits until later changes have a later change time: at most one
    /// tick of the kernel's clock, and only if there is such a skill.
    pub fn record(job: &Job, workspace: &OwnedFd) -> io::Result<Self> {
        let writable = job.skills.iter().filter(|skill| skill.is_writable);
        let mut sent = Self {
            writable_directories: writable.map(|skill| skill.path.clone()).collect(),
            files: HashMap::new(),
            usage_before: Usage::default(),
        };
        if sent.writable_directories.is_empty() {
            return Ok(sent);
        }
        let found = std::cell::RefCell::new((HashMap::new(), (0, 0)));
        let options = WalkOptions {
            root: workspace.as_fd(),
            excluded_names: &[],
            is_excluded: &|path, stat| {
                if sent.is_outside(path) {
                    return true;
                }
                if !is_directory(stat) {
                    let (files, newest) = &mut *found.borrow_mut();
                    let identity = FileIdentity::of(stat);
                    *newest = identity.changed.max(*newest);
                    files.insert(path.to_vec(), identity);
                }
                false
            },
            max_entries: MAX_ENTRIES,
        };
        walk_tree::<io::Error>(options, &mut |_| Ok(()))?;
        let (files, newest) = found.into_inner();
        wait_for_next_timestamp(newest);
        sent.files = files;
        sent.usage_before = Usage::of(SKILLS_PATH)?;
        Ok(sent)
    }

    /// Whether the workspace and the changes to the skill together exceed the limits of the job. They are on two file
    /// systems, because the skill itself does not count. An error counts as too much.
    pub fn exceed_limits(&self, job: &Job) -> bool {
        if self.writable_directories.is_empty() {
            return false;
        }
        let (Ok(workspace), Ok(skills)) = (Usage::of(WORKSPACE), Usage::of(SKILLS_PATH)) else {
            return true;
        };
        let changed_bytes = skills.bytes.saturating_sub(self.usage_before.bytes);
        let changed_inodes = skills.inodes.saturating_sub(self.usage_before.inodes);
        workspace.bytes.saturating_add(changed_bytes) > job.max_workspace_bytes
            || workspace.inodes.saturating_add(changed_inodes) > job.max_workspace_inodes
    }

    /// Whether an entry of the workspace after the run is a skill, or a part of one, that the command has not changed.
    pub fn is_unchanged(&self, path: &[u8], stat: &Stat) -> bool {
        if path != SKILLS && !is_below(path, SKILLS) {
            return false;
        }
        if is_directory(stat) {
            return self.is_outside(path);
        }
        self.is_outside(path) || self.files.get(path) == Some(&FileIdentity::of(stat))
    }

    /// Whether a path is neither a writable skill, nor below or above one.
    fn is_outside(&self, path: &[u8]) -> bool {
        let directories = &self.writable_directories;
        !directories
            .iter()
            .any(|directory| path == directory || is_below(path, directory) || is_below(directory, path))
    }
}

fn is_below(path: &[u8], directory: &[u8]) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.starts_with(b"/"))
}

fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

/// The kernel stamps files with a clock that advances by ticks. A change within the tick of the newest file would have
/// the same time.
fn wait_for_next_timestamp(newest: (i64, i64)) {
    for _ in 0..MAX_CLOCK_CHECKS {
        let now = clock_gettime(ClockId::RealtimeCoarse);
        if (now.tv_sec, now.tv_nsec) > newest {
            return;
        }
        std::thread::sleep(CLOCK_CHECK_INTERVAL);
    }
}
