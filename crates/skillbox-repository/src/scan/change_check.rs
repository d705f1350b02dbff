//! Detects with one `stat`, or two for a skill, whether a directory changed since its scan. Only a SKILL.md that is a link
//! must be opened.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, OFlags, Stat, fstat, statat};

use super::dir_scanner::DirScanner;
use super::scanned_dir::{DirKind, ScannedDir};
use crate::fs::{ContainedDir, FileStamp, StampComparison};
use crate::parse::SKILL_MD_NAMES;

/// Whether a directory changed since its scan, or may have changed without changing its stamp.
pub(super) fn has_changed(scanner: &DirScanner<'_>, scanned: &ScannedDir) -> bool {
    let (stamp, stat, dir_stamp) = match &scanned.kind {
        DirKind::EmbeddedSkill { .. } => return false,
        DirKind::Group { dir, stamp, .. } => (stamp.as_ref(), stat_path(scanner, dir, AtFlags::empty()), &None),
        DirKind::Unusable { stamp: None, .. } => return true,
        DirKind::Unusable {
            dir, stamp, dir_stamp, ..
        } => (stamp.as_ref(), stat_skill_md(scanner, dir), dir_stamp),
        DirKind::Skill {
            entry,
            stamp,
            is_link,
            dir_stamp,
        } => {
            let stat = match (is_link, entry.skill_md_name() == SKILL_MD_NAMES[0]) {
                (true, _) => stat_link_target(scanner, entry.dir(), entry.skill_md_name()),
                (false, true) => stat_path(scanner, entry.skill_md_path(), AtFlags::SYMLINK_NOFOLLOW),
                // A file with the preferred spelling may have been added.
                (false, false) => stat_skill_md(scanner, entry.dir()),
            };
            (Some(stamp), stat, dir_stamp)
        }
    };
    // A directory added to a skill changes the stamp of the skill's directory.
    let has_changed_entries = dir_stamp.as_ref().is_some_and(|stamp| {
        let stat = stat_path(scanner, scanned.dir(), AtFlags::empty());
        !is_unchanged(Some(stamp), stat.as_ref())
    });
    has_changed_entries || !is_unchanged(stamp, stat.as_ref())
}

fn is_unchanged(stamp: Option<&FileStamp>, stat: Option<&Stat>) -> bool {
    match (stamp, stat) {
        (Some(stamp), Some(stat)) => stamp.compare(&FileStamp::for_comparison(stat)) == StampComparison::Same,
        _ => false,
    }
}

fn stat_path(scanner: &DirScanner<'_>, path: &Path, flags: AtFlags) -> Option<Stat> {
    statat(scanner.root(), scanner.relative(path), flags).ok()
}

fn stat_skill_md(scanner: &DirScanner<'_>, dir: &Path) -> Option<Stat> {
    SKILL_MD_NAMES
        .iter()
        .find_map(|file| stat_path(scanner, &dir.join(file), AtFlags::SYMLINK_NOFOLLOW))
}

fn stat_link_target(scanner: &DirScanner<'_>, dir: &Path, file: &OsStr) -> Option<Stat> {
    let directory = ContainedDir::open_at(scanner.root(), scanner.relative(dir)).ok()?;
    let file = directory.open_beneath(file.as_bytes(), OFlags::PATH).ok()?;
    fstat(file).ok()
}
