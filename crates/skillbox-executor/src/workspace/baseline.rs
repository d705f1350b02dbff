//! The matching files of a session's workspace before a run, so that the run reports only what it created or changed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::fs::{FileType, Stat};
use rustix::time::{ClockId, clock_gettime};
use sha2::{Digest as _, Sha256};
use skillbox_model::RelPath;

use super::original_skill::OriginalSkill;
use super::{Workspace, nofollow};
use crate::job::OutputGlobs;

/// The deepest directory that is searched, as in the collection.
const MAX_DEPTH: usize = 64;
/// The maximum number of recorded files. Further files count as changed by the run.
const MAX_FILES: usize = 20_000;
/// How often [`wait_for_next_timestamp`] looks at the clock. A tick of the kernel takes at most 10 ms.
const MAX_CLOCK_CHECKS: usize = 20;
const CLOCK_CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// How files are compared with the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaselineContent {
    /// By inode and change time, which a script cannot set: for runs in the workspace itself.
    Identity,
    /// By digest as well: for executors that write all files again after the run.
    Digest,
}

/// The files that were there before a run. The default contains none.
#[derive(Debug, Default)]
pub struct Baseline {
    files: BTreeMap<RelPath, RecordedFile>,
    newest_change: (i64, i64),
    skill: Option<OriginalSkill>,
}

#[derive(Debug, PartialEq, Eq)]
struct RecordedFile {
    identity: FileIdentity,
    digest: Option<[u8; 32]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileIdentity {
    inode: u64,
    size: i64,
    changed: (i64, i64),
}

impl FileIdentity {
    fn of(stat: &Stat) -> Self {
        Self {
            inode: stat.st_ino,
            size: stat.st_size,
            changed: (stat.st_ctime, stat.st_ctime_nsec as i64),
        }
    }
}

impl Baseline {
    /// Adds the skill whose directory the run may change.
    pub fn with_skill(mut self, skill: OriginalSkill) -> Self {
        self.skill = Some(skill);
        self
    }

    /// The skill whose directory the run may change, if `path` is in that directory.
    pub(super) fn skill_of(&self, path: &RelPath) -> Option<&OriginalSkill> {
        self.skill.as_ref().filter(|skill| skill.contains(path))
    }

    /// Records the files that the globs match, and waits until later changes have a later change time (at most one tick
    /// of the kernel's clock, and only after a change within that tick).
    pub fn record(workspace: &Workspace, globs: &OutputGlobs, content: BaselineContent) -> io::Result<Self> {
        let mut baseline = Self::default();
        for root in globs.roots() {
            let Ok(path) = RelPath::parse(root) else {
                baseline.walk(workspace.root(), None, globs, content, 0);
                continue;
            };
            if let Ok(directory) = nofollow::open_directory(workspace.root(), &path) {
                baseline.walk(directory.as_fd(), Some(&path), globs, content, 0);
            }
        }
        if !baseline.files.is_empty() {
            wait_for_next_timestamp(baseline.newest_change);
        }
        Ok(baseline)
    }

    /// Whether a file of the workspace is the same as before the run.
    pub(super) fn contains_unchanged(&self, parent: BorrowedFd<'_>, name: &[u8], path: &RelPath, stat: &Stat) -> bool {
        let Some(recorded) = self.files.get(path) else {
            return false;
        };
        let identity = FileIdentity::of(stat);
        recorded.identity == identity
            || (recorded.digest.is_some()
                && recorded.identity.size == identity.size
                && recorded.digest == digest_of(parent, name))
    }

    /// A directory that cannot be read contributes nothing: its files count as changed by the run.
    fn walk(
        &mut self,
        directory: BorrowedFd<'_>,
        path: Option<&RelPath>,
        globs: &OutputGlobs,
        content: BaselineContent,
        depth: usize,
    ) {
        let Ok(entries) = rustix::fs::Dir::read_from(directory) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let Ok(child) =
                RelPath::parse(name).and_then(|name| path.map_or(Ok(name.clone()), |path| path.join(&name)))
            else {
                continue;
            };
            let Ok(stat) = nofollow::stat_child(directory, name) else {
                continue;
            };
            match nofollow::file_type(&stat) {
                FileType::Directory if depth < MAX_DEPTH => {
                    if let Ok(below) = nofollow::open_child_directory(directory, name) {
                        self.walk(below.as_fd(), Some(&child), globs, content, depth + 1);
                    }
                }
                FileType::RegularFile if globs.matches(&child) && self.files.len() < MAX_FILES => {
                    let identity = FileIdentity::of(&stat);
                    let digest = match content {
                        BaselineContent::Identity => None,
                        BaselineContent::Digest => digest_of(directory, name),
                    };
                    self.newest_change = self.newest_change.max(identity.changed);
                    self.files.insert(child, RecordedFile { identity, digest });
                }
                _ => {}
            }
        }
    }
}

/// The digest of a file; `None` if it cannot be read.
fn digest_of(parent: BorrowedFd<'_>, name: &[u8]) -> Option<[u8; 32]> {
    let mut file = File::from(nofollow::open_child_file(parent, name).ok()?);
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Some(hasher.finalize().into()),
            Ok(count) => hasher.update(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// The kernel stamps files with a clock that advances by ticks. A change within the tick of the newest recorded one would
/// have the same time, so this waits for the next tick.
fn wait_for_next_timestamp(newest: (i64, i64)) {
    for _ in 0..MAX_CLOCK_CHECKS {
        let now = clock_gettime(ClockId::RealtimeCoarse);
        if (now.tv_sec, now.tv_nsec) > newest {
            return;
        }
        std::thread::sleep(CLOCK_CHECK_INTERVAL);
    }
}
