//! Skills inside skills: they are told, not loaded.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, openat, statat};

use crate::listing::{NameKind, is_skipped, list};
use crate::place::Notes;
use crate::scan_note;

/// The two spellings of the file that makes a skill, the better one first.
pub(crate) const SKILL_FILES: [&str; 2] = ["SKILL.md", "skill.md"];

/// A skill with more directories than this is not searched further for others.
const MAX_DIRECTORIES: usize = 1_000;

/// Looks for skills below the skill `dir`, which is `relative` below `root`, and notes each.
///
/// Links are not followed, and what cannot be read is passed by: it is the outer skill that was asked for.
pub(crate) fn note_nested(root: BorrowedFd<'_>, relative: &[u8], dir: &Path, levels: u8, notes: &mut Notes) {
    let mut search = Search {
        outer: dir,
        notes,
        budget: MAX_DIRECTORIES,
    };
    search.look_into(root, relative, dir, levels);
}

struct Search<'a> {
    outer: &'a Path,
    notes: &'a mut Notes,
    budget: usize,
}

impl Search<'_> {
    fn look_into(&mut self, parent: BorrowedFd<'_>, relative: &[u8], dir: &Path, levels: u8) {
        if levels == 0 || !may_have_directories(parent, relative) {
            return;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(directory) = openat(parent, relative, flags, Mode::empty()) else {
            return;
        };
        let listing = list(directory.as_fd(), |name, kind| {
            kind == NameKind::Directory && !is_skipped(name)
        });
        for name in listing.names {
            if self.budget == 0 {
                return;
            }
            self.budget -= 1;
            let below = dir.join(OsStr::from_bytes(&name.bytes));
            match skill_file_in(directory.as_fd(), &name.bytes) {
                Some(file) => self.notes.push(scan_note::nested_skill(&below.join(file), self.outer)),
                None => self.look_into(directory.as_fd(), &name.bytes, &below, levels - 1),
            }
        }
    }
}

/// A directory with two links has no directories in it, by the old custom that each one's `..` is a link. File
/// systems without the custom have a link count of one; a wrong count would cost no more than a note.
fn may_have_directories(parent: BorrowedFd<'_>, relative: &[u8]) -> bool {
    statat(parent, relative, AtFlags::empty()).is_ok_and(|stat| stat.st_nlink != 2)
}

fn skill_file_in(parent: BorrowedFd<'_>, name: &[u8]) -> Option<&'static str> {
    SKILL_FILES.into_iter().find(|file| {
        let path = [name, b"/", file.as_bytes()].concat();
        statat(parent, &path[..], AtFlags::SYMLINK_NOFOLLOW).is_ok()
    })
}
