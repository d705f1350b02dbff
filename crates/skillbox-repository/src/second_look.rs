//! Whether a place has changed since it was looked at: one `stat`, and nothing is opened.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, OFlags, Stat, fstat, statat};

use crate::contained::ContainedDir;
use crate::nested::SKILL_FILES;
use crate::place::{Place, What};
use crate::stamp::{Comparison, Stamp};
use crate::visit::Visitor;

/// Whether a second look at a place differs from the first, or cannot be trusted to be the same.
pub(crate) fn has_changed(visitor: &Visitor<'_>, place: &Place) -> bool {
    let (stamp, now) = match &place.what {
        What::Embedded { .. } => return false,
        What::Group { dir, stamp, .. } => (stamp.as_ref(), look(visitor, dir, AtFlags::empty())),
        What::Unusable { stamp: None, .. } => return true,
        What::Unusable { dir, stamp } => (stamp.as_ref(), look_at_skill_file(visitor, dir)),
        What::Skill { entry, stamp, linked } => {
            let now = match (linked, entry.file_name() == SKILL_FILES[0]) {
                (true, _) => look_through_link(visitor, entry.dir(), entry.file_name()),
                (false, true) => look(visitor, entry.path(), AtFlags::SYMLINK_NOFOLLOW),
                // The better spelling may have come meanwhile.
                (false, false) => look_at_skill_file(visitor, entry.dir()),
            };
            (Some(stamp), now)
        }
    };
    match (stamp, now) {
        (Some(stamp), Some(now)) => stamp.compare(&Stamp::for_comparison(&now)) != Comparison::Same,
        _ => true,
    }
}

fn look(visitor: &Visitor<'_>, path: &Path, flags: AtFlags) -> Option<Stat> {
    statat(visitor.root(), visitor.relative(path), flags).ok()
}

fn look_at_skill_file(visitor: &Visitor<'_>, dir: &Path) -> Option<Stat> {
    SKILL_FILES
        .iter()
        .find_map(|file| look(visitor, &dir.join(file), AtFlags::SYMLINK_NOFOLLOW))
}

fn look_through_link(visitor: &Visitor<'_>, dir: &Path, file: &OsStr) -> Option<Stat> {
    let directory = ContainedDir::open_at(visitor.root(), visitor.relative(dir)).ok()?;
    let file = directory.open_beneath(file.as_bytes(), OFlags::PATH).ok()?;
    fstat(file).ok()
}
