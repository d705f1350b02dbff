//! Reports skills inside other skills, which are not loaded.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, openat, statat};

use super::scanned_dir::DirDiagnostics;
use super::skipped_names::is_skipped_name;
use crate::diagnostics::scan_diagnostics;
use crate::fs::{EntryKind, list_dir};
use crate::parse::SKILL_MD_NAMES;

/// The maximum number of directories that are searched in one skill.
const MAX_DIRECTORIES: usize = 1_000;

/// Searches the skill `dir` for other skills, at most `levels` deep, and reports each. `relative` is the path of `dir`
/// relative to `root`.
///
/// Links are not followed, and unreadable directories are ignored: the outer skill is usable anyway.
pub(super) fn report_nested_skills(
    root: BorrowedFd<'_>,
    relative: &[u8],
    dir: &Path,
    levels: u8,
    diagnostics: &mut DirDiagnostics,
) {
    let mut search = NestedSkillSearch {
        outer: dir,
        diagnostics,
        remaining_dirs: MAX_DIRECTORIES,
    };
    search.search_dir(root, relative, dir, levels);
}

struct NestedSkillSearch<'a> {
    outer: &'a Path,
    diagnostics: &'a mut DirDiagnostics,
    remaining_dirs: usize,
}

impl NestedSkillSearch<'_> {
    fn search_dir(&mut self, parent: BorrowedFd<'_>, relative: &[u8], dir: &Path, levels: u8) {
        if levels == 0 || !may_have_subdirectories(parent, relative) {
            return;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(directory) = openat(parent, relative, flags, Mode::empty()) else {
            return;
        };
        let listing = list_dir(directory.as_fd(), |name, kind| {
            kind == EntryKind::Directory && !is_skipped_name(name)
        });
        for entry in listing.entries {
            if self.remaining_dirs == 0 {
                return;
            }
            self.remaining_dirs -= 1;
            let subdirectory = dir.join(OsStr::from_bytes(&entry.name));
            match find_skill_md(directory.as_fd(), &entry.name) {
                Some(file) => self
                    .diagnostics
                    .push(scan_diagnostics::nested_skill(&subdirectory.join(file), self.outer)),
                None => self.search_dir(directory.as_fd(), &entry.name, &subdirectory, levels - 1),
            }
        }
    }
}

/// A directory with a link count of two has no subdirectories, because the `..` of each would be another link. File
/// systems that do not count these links report one. If a file system reports a wrong count, only a diagnostic is lost.
fn may_have_subdirectories(parent: BorrowedFd<'_>, relative: &[u8]) -> bool {
    statat(parent, relative, AtFlags::empty()).is_ok_and(|stat| stat.st_nlink != 2)
}

fn find_skill_md(parent: BorrowedFd<'_>, name: &[u8]) -> Option<&'static str> {
    SKILL_MD_NAMES.into_iter().find(|file| {
        let path = [name, b"/", file.as_bytes()].concat();
        statat(parent, &path[..], AtFlags::SYMLINK_NOFOLLOW).is_ok()
    })
}
