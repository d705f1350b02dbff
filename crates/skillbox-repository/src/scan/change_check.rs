//! Detects with one `stat` whether a directory changed since its scan. Only links need an open.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, OFlags, Stat, fstat, statat};

use super::dir_scanner::DirScanner;
use super::scanned_dir::{DirKind, ScannedDir};
use crate::fs::{Comparison, ContainedDir, FileStamp};
use crate::parse::SKILL_MD_NAMES;

/// Whether a directory changed since its scan, or may have changed without a visible difference.
pub(super) fn has_changed(scanner: &DirScanner<'_>, scanned: &ScannedDir) -> bool {
    let (stamp, now) = match &scanned.kind {
        DirKind::EmbeddedSkill { .. } => return false,
        DirKind::Group { dir, stamp, .. } => (stamp.as_ref(), stat_path(scanner, dir, AtFlags::empty())),
        DirKind::Unusable { stamp: None, .. } => return true,
        DirKind::Unusable { dir, stamp } => (stamp.as_ref(), stat_skill_md(scanner, dir)),
        DirKind::Skill { entry, stamp, is_link } => {
            let now = match (is_link, entry.file_name() == SKILL_MD_NAMES[0]) {
                (true, _) => stat_link_target(scanner, entry.dir(), entry.file_name()),
                (false, true) => stat_path(scanner, entry.path(), AtFlags::SYMLINK_NOFOLLOW),
                // A file with the preferred spelling may have been added.
                (false, false) => stat_skill_md(scanner, entry.dir()),
            };
            (Some(stamp), now)
        }
    };
    match (stamp, now) {
        (Some(stamp), Some(now)) => stamp.compare(&FileStamp::for_comparison(&now)) != Comparison::Same,
        _ => true,
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
