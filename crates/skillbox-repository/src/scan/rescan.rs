//! Updates a scanned source by reading only what changed.
//!
//! One `stat` per directory and per SKILL.md detects changes: an added or removed name changes the stamp of its
//! directory, an edit changes the stamp of the file. Nothing unchanged is opened, listed or parsed.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, statat};

use super::change_check::has_changed;
use super::dir_scanner::{DirScan, DirScanner};
use super::options::ScanOptions;
use super::pending_dir::{Ancestors, PendingDir};
use super::scanned_dir::{DirKind, ScannedDir};
use super::scanned_source::{ScannedSource, scan_trees};
use super::skipped_names::is_skipped_name;
use crate::catalog::Replacement;
use crate::fs::{StampComparison, compare_paths, file_identity, is_below};
use crate::parallel::map_in_order;
use crate::parse::is_skill_md_name;
use crate::skill::Source;

/// The changes that an update of the sources found.
#[derive(Debug, Default)]
pub(crate) struct SourceUpdate {
    /// Directories that were scanned because they are new, changed or replaced by another directory.
    pub(crate) scanned_dirs: Vec<PathBuf>,
    /// Directories that were removed or are no longer part of the source.
    pub(crate) removed_dirs: Vec<PathBuf>,
    /// Skills whose content changed, but not their name or path.
    pub(crate) replacements: Vec<Replacement>,
    /// Whether there are changes other than replacements, so that the sources must be merged again.
    pub(crate) needs_merge: bool,
}

impl ScannedSource {
    /// Checks every directory and reads those that changed.
    pub(crate) fn rescan(&mut self, options: &ScanOptions, update: &mut SourceUpdate) {
        self.update_selected(options, update, |source, scanner| {
            let threads = options.threads;
            let changed = map_in_order(&source.dirs, threads, || (), |(), dir| has_changed(scanner, dir));
            let indexes = (0..source.dirs.len()).filter(|index| changed[*index]).collect();
            (indexes, Vec::new())
        });
    }

    /// Checks only the given paths, which may be directories, SKILL.md files or other names, existing or removed.
    pub(crate) fn rescan_paths(&mut self, paths: &[PathBuf], options: &ScanOptions, update: &mut SourceUpdate) {
        let root = self.info.root.clone();
        if !paths.iter().any(|path| *path == root || is_below(path, &root)) {
            return;
        }
        self.update_selected(options, update, |source, scanner| {
            source.find_dirs_to_scan(paths, scanner)
        });
    }

    /// Scans the changed and new directories that `select` returns.
    fn update_selected(
        &mut self,
        options: &ScanOptions,
        update: &mut SourceUpdate,
        select: impl FnOnce(&Self, &DirScanner<'_>) -> (Vec<usize>, Vec<PendingDir>),
    ) {
        if matches!(self.source, Source::Embedded(_)) {
            return;
        }
        let info = self.info.clone();
        match DirScanner::open(&info, options) {
            Ok(scanner) => {
                self.is_open = true;
                let (changed, new) = select(self, &scanner);
                if !changed.is_empty() || !new.is_empty() {
                    self.scan_changes(&scanner, changed, new, update);
                    self.rescan_if_below_limit(options, update);
                }
            }
            Err(error) => {
                let was_unusable = matches!(
                    self.dirs[..],
                    [ScannedDir {
                        kind: DirKind::Unusable { .. },
                        ..
                    }]
                );
                let before = std::mem::take(&mut self.dirs);
                self.set_unusable(&error);
                update.needs_merge |= !was_unusable;
                update
                    .removed_dirs
                    .extend(before.iter().map(|dir| dir.dir().to_owned()));
            }
        }
    }

    /// Scans the source from scratch if it exceeded the limit on directories and has fewer now, because the directories
    /// beyond the limit are unknown.
    fn rescan_if_below_limit(&mut self, options: &ScanOptions, update: &mut SourceUpdate) {
        if self.exceeds_dir_limit && self.dirs.len() < options.max_directories {
            update
                .removed_dirs
                .extend(self.dirs.iter().map(|dir| dir.dir().to_owned()));
            self.scan_all_dirs(options);
            update
                .scanned_dirs
                .extend(self.dirs.iter().map(|dir| dir.dir().to_owned()));
            update.needs_merge = true;
        }
    }

    /// Returns the indexes of the known directories that changed and the new directories, as far as `paths` concern
    /// them.
    fn find_dirs_to_scan(&self, paths: &[PathBuf], scanner: &DirScanner<'_>) -> (Vec<usize>, Vec<PendingDir>) {
        let mut changed = Vec::new();
        let mut new: Vec<PendingDir> = Vec::new();
        for path in paths {
            if let Some(index) = self.find_dir(path) {
                changed.push(index);
                continue;
            }
            let Some(parent) = path.parent().and_then(|parent| self.find_dir(parent)) else {
                continue;
            };
            // In a group, only new directories and a new SKILL.md matter.
            match self.dirs[parent].kind {
                DirKind::Group { .. } if !is_skill_md(path) => new.extend(self.pending_new_dir(path, parent, scanner)),
                _ => changed.push(parent),
            }
        }
        changed.sort_unstable();
        changed.dedup();
        changed.retain(|index| has_changed(scanner, &self.dirs[*index]));
        (changed, new)
    }

    fn pending_new_dir(&self, path: &Path, parent: usize, scanner: &DirScanner<'_>) -> Option<PendingDir> {
        let depth = self.dirs[parent].depth + 1;
        let name = path.file_name()?.as_bytes();
        if is_skipped_name(name) || depth > scanner.options().max_depth {
            return None;
        }
        let stat = statat(scanner.root(), scanner.relative(path), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {}
            FileType::Symlink if !self.dirs[parent].is_around_skill_files() && scanner.should_follow_link(path) => {}
            _ => return None,
        }
        Some(PendingDir {
            dir: path.to_owned(),
            depth,
            is_in_skill: self.dirs[parent].is_around_skill_files(),
            ancestors: self.ancestors(path.parent()?, scanner),
        })
    }

    /// The identities of `dir` and the directories above it, up to the root of the source.
    fn ancestors(&self, dir: &Path, scanner: &DirScanner<'_>) -> Option<Arc<Ancestors>> {
        let mut paths: Vec<&Path> = dir
            .ancestors()
            .take_while(|path| *path == self.info.root || is_below(path, &self.info.root))
            .collect();
        paths.reverse();
        let mut ancestors = None;
        for path in paths {
            let stat = statat(scanner.root(), scanner.relative(path), AtFlags::empty()).ok()?;
            ancestors = Some(Ancestors::new(file_identity(&stat), ancestors));
        }
        ancestors
    }

    /// Returns the index of a scanned directory.
    pub(crate) fn find_dir(&self, dir: &Path) -> Option<usize> {
        self.dirs
            .binary_search_by(|scanned| compare_paths(scanned.dir(), dir))
            .ok()
    }

    /// Scans the changed and the new directories, and replaces the old results.
    fn scan_changes(
        &mut self,
        scanner: &DirScanner<'_>,
        changed: Vec<usize>,
        mut new: Vec<PendingDir>,
        update: &mut SourceUpdate,
    ) {
        let pending: Vec<PendingDir> = changed.iter().map(|index| self.pending_dir(*index, scanner)).collect();
        let scans = map_in_order(&pending, scanner.options().threads, Vec::new, |buffer, pending| {
            scanner.scan_dir(pending, buffer)
        });
        let mut is_removed = vec![false; self.dirs.len()];
        // Parents come first: a directory that was removed together with its parent is ignored.
        for (index, scan) in changed.into_iter().zip(scans) {
            match scan {
                _ if is_removed[index] => {}
                DirScan::Scanned(dir, subdirectories) => {
                    self.replace_dir(index, dir, subdirectories, &mut new, &mut is_removed, update)
                }
                DirScan::Missing => {
                    is_removed[index] = true;
                    self.mark_removed_below(index, |_| true, &mut is_removed);
                }
            }
        }
        self.remove_and_add_dirs(scanner, new, &is_removed, update);
    }

    fn pending_dir(&self, index: usize, scanner: &DirScanner<'_>) -> PendingDir {
        let scanned = &self.dirs[index];
        let parent = scanned.dir().parent();
        PendingDir {
            dir: scanned.dir().to_owned(),
            depth: scanned.depth,
            is_in_skill: scanned.is_in_skill,
            ancestors: parent.and_then(|parent| self.ancestors(parent, scanner)),
        }
    }

    /// Replaces the result for one directory, marks removed subdirectories and appends unknown ones to `new`.
    fn replace_dir(
        &mut self,
        index: usize,
        scanned: ScannedDir,
        subdirectories: Vec<PendingDir>,
        new: &mut Vec<PendingDir>,
        is_removed: &mut [bool],
        update: &mut SourceUpdate,
    ) {
        let still_exists = |dir: &Path| {
            subdirectories
                .binary_search_by(|it| compare_paths(&it.dir, dir))
                .is_ok()
        };
        let is_same_dir = self.dirs[index].has_same_subdirectories(&scanned);
        self.mark_removed_below(index, |dir| !is_same_dir || !still_exists(dir), is_removed);
        let old = std::mem::replace(&mut self.dirs[index], scanned);
        let current = &mut self.dirs[index];
        update.needs_merge |= !old.diagnostics.iter().eq(current.diagnostics.iter());
        match (&old.kind, &mut current.kind) {
            (
                DirKind::Skill { entry: old, stamp, .. },
                DirKind::Skill {
                    entry: new,
                    stamp: later,
                    ..
                },
            ) if old.name() == new.name() && old.skill_md_path() == new.skill_md_path() => {
                if stamp.compare(later) != StampComparison::Different && old.meta == new.meta {
                    // The file did not change; it was read again because its stamp was uncertain.
                    *new = old.clone();
                } else {
                    let (old, new) = (old.clone(), new.clone());
                    update.replacements.push(Replacement { old, new });
                }
            }
            (
                DirKind::Group {
                    exceeds_depth: before, ..
                },
                DirKind::Group { exceeds_depth: now, .. },
            ) if before == now => {}
            _ => update.needs_merge = true,
        }
        update.scanned_dirs.push(self.dirs[index].dir().to_owned());
        let is_unknown = |pending: &PendingDir| self.find_dir(&pending.dir).is_none_or(|known| is_removed[known]);
        new.extend(subdirectories.into_iter().filter(is_unknown).collect::<Vec<_>>());
    }

    /// Marks each child of a directory for which `is_child_removed` returns true as removed, with everything below it.
    fn mark_removed_below(&self, index: usize, is_child_removed: impl Fn(&Path) -> bool, is_removed: &mut [bool]) {
        let dir = self.dirs[index].dir();
        let depth = self.dirs[index].depth;
        let mut is_in_removed_child = false;
        for (scanned, is_removed) in self.dirs.iter().zip(is_removed).skip(index + 1) {
            if !is_below(scanned.dir(), dir) {
                break;
            }
            if scanned.depth == depth + 1 {
                is_in_removed_child = is_child_removed(scanned.dir());
            }
            *is_removed |= is_in_removed_child;
        }
    }

    /// Drops the removed directories, then scans and adds the new ones.
    fn remove_and_add_dirs(
        &mut self,
        scanner: &DirScanner<'_>,
        mut new: Vec<PendingDir>,
        is_removed: &[bool],
        update: &mut SourceUpdate,
    ) {
        let mut index = 0;
        self.dirs.retain(|scanned| {
            index += 1;
            if is_removed[index - 1] {
                update.removed_dirs.push(scanned.dir().to_owned());
            }
            !is_removed[index - 1]
        });
        update.needs_merge |= is_removed.contains(&true);
        // This is checked after the removal: a removed path may be a new directory, and a parent may have become a
        // skill, or no longer be one.
        new.retain(|pending| self.is_new(pending));
        new.sort_by(|a, b| compare_paths(&a.dir, &b.dir));
        new.dedup_by(|a, b| a.dir == b.dir);
        if new.is_empty() {
            return;
        }
        update.needs_merge = true;
        let max_dirs = scanner.options().max_directories.saturating_sub(self.dirs.len());
        let trees = scan_trees(scanner, new, max_dirs);
        self.exceeds_dir_limit |= trees.exceeds_dir_limit;
        update
            .scanned_dirs
            .extend(trees.dirs.iter().map(|dir| dir.dir().to_owned()));
        self.dirs.extend(trees.dirs);
        self.dirs.sort_by(|a, b| compare_paths(a.dir(), b.dir()));
    }

    /// Whether a directory is unknown and was found under its parent as it is now.
    fn is_new(&self, pending: &PendingDir) -> bool {
        let parent = pending.dir.parent().and_then(|parent| self.find_dir(parent));
        let is_current = parent.is_some_and(|parent| self.dirs[parent].is_around_skill_files() == pending.is_in_skill);
        is_current && self.find_dir(&pending.dir).is_none()
    }
}

fn is_skill_md(path: &Path) -> bool {
    path.file_name().is_some_and(|name| is_skill_md_name(name.as_bytes()))
}
