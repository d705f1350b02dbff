//! Lists the directories inside a skill, where a scan goes on: a SKILL.md further down is a skill of its own.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, Stat, fstat, fstatfs, openat};

use super::skipped_names::is_skipped_name;
use crate::fs::{EntryKind, list_dir};
use crate::parse::is_skill_md_name;

/// File systems whose link count of a directory is two plus the number of its subdirectories, or one if unknown: ext2 to
/// ext4, XFS, tmpfs, and overlayfs, which reports the count of the layer below or one. statfs(2) lists the numbers.
const FILE_SYSTEMS_WITH_LINK_COUNTS: [u64; 4] = [0xef53, 0x5846_5342, 0x0102_1994, 0x794c_7630];

/// Whether link counts tell which directories have no subdirectories.
///
/// Most directories of skills, such as `scripts` and `references`, have none. Not opening and listing them halves the
/// number of system calls for them.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkCounts {
    /// The device of the source, if its file system counts links.
    device: Option<u64>,
}

impl LinkCounts {
    /// Looks up the file system of a source.
    pub(super) fn of_source(root: BorrowedFd<'_>) -> Self {
        let counts_links = fstatfs(root).is_ok_and(|file_system| {
            u64::try_from(file_system.f_type).is_ok_and(|kind| FILE_SYSTEMS_WITH_LINK_COUNTS.contains(&kind))
        });
        let device = fstat(root).ok().filter(|_| counts_links).map(|stat| device_of(&stat));
        Self { device }
    }

    /// Whether a directory certainly has no subdirectories.
    pub(super) fn excludes_subdirectories(self, stat: &Stat) -> bool {
        stat.st_nlink == 2 && self.device == Some(device_of(stat))
    }
}

#[expect(
    clippy::unnecessary_cast,
    reason = "the fields of the kernel's structure differ between architectures"
)]
fn device_of(stat: &Stat) -> u64 {
    stat.st_dev as u64
}

/// Lists the directories in `dir`, sorted by name. `relative` is the path of `dir` relative to `root`.
///
/// Links are not followed inside a skill, and an unreadable directory counts as empty: the outer skill is usable anyway.
pub(super) fn list_subdirectories(root: BorrowedFd<'_>, relative: &[u8], dir: &Path) -> Vec<PathBuf> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(directory) = openat(root, relative, flags, Mode::empty()) else {
        return Vec::new();
    };
    let listing = list_dir(directory.as_fd(), |name, kind| {
        kind == EntryKind::Directory && !is_skipped_name(name) && !is_skill_md_name(name)
    });
    let names = listing.entries.iter().map(|entry| OsStr::from_bytes(&entry.name));
    names.map(|name| dir.join(name)).collect()
}
