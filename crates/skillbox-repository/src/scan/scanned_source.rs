//! Scans all directories of a source, level by level, on several threads. The result is ordered by path.
//!
//! Each level is scanned completely before the next one, so that the limit on directories does not depend on the timing
//! of the threads. Only the descriptor of the root stays open, so a scan does not need more descriptors for more
//! directories.

use std::io;
use std::sync::Arc;

use super::dir_scanner::{DirScan, DirScanner};
use super::options::ScanOptions;
use super::pending_dir::PendingDir;
use super::scanned_dir::{DirDiagnostics, DirKind, ScannedDir};
use crate::diagnostics::scan_diagnostics;
use crate::fs::compare_paths;
use crate::parallel::map_in_order;
use crate::parse::parse_lenient;
use crate::skill::{EmbeddedSkills, SkillEntry, Source, SourceInfo};

/// A source and the result of its last scan.
#[derive(Debug)]
pub(crate) struct ScannedSource {
    pub(crate) source: Source,
    pub(crate) info: Arc<SourceInfo>,
    /// Ordered by path. The first one of a source on disk is the directory of the source.
    pub(crate) dirs: Vec<ScannedDir>,
    /// Whether the source has more directories than the limit.
    pub(crate) exceeds_dir_limit: bool,
    /// Whether the source exists and could be opened.
    pub(crate) is_open: bool,
}

impl ScannedSource {
    /// Scans a source for the first time. `position` is its position in the list of sources.
    pub(crate) fn scan(source: Source, position: u32, options: &ScanOptions) -> Self {
        let info = source.info(position, options.skill_limits);
        let mut scanned = Self {
            source,
            info,
            dirs: Vec::new(),
            exceeds_dir_limit: false,
            is_open: true,
        };
        match &scanned.source {
            Source::Embedded(skills) => scanned.dirs = scan_embedded(skills, &scanned.info),
            Source::Directory { .. } | Source::OptionalDirectory { .. } => scanned.scan_all_dirs(options),
        }
        scanned
    }

    /// Scans the directory of the source and everything below it.
    pub(crate) fn scan_all_dirs(&mut self, options: &ScanOptions) {
        let info = self.info.clone();
        match DirScanner::open(&info, options) {
            Ok(scanner) => {
                let root = PendingDir::root(self.info.root.clone());
                let tree = scan_trees(&scanner, vec![root], options.max_directories);
                self.dirs = tree.dirs;
                self.is_open = true;
                self.exceeds_dir_limit = tree.exceeds_dir_limit;
            }
            Err(error) => self.set_unusable(&error),
        }
    }

    /// Replaces the result of the scan by the reason why the source cannot be opened.
    pub(crate) fn set_unusable(&mut self, error: &io::Error) {
        let root = &self.info.root;
        let diagnostic = match (error.kind(), &self.source) {
            (io::ErrorKind::NotFound, Source::OptionalDirectory { .. }) => None,
            (io::ErrorKind::NotFound, _) => Some(scan_diagnostics::source_missing(root)),
            (io::ErrorKind::NotADirectory, _) => Some(scan_diagnostics::source_not_a_directory(root)),
            _ => Some(scan_diagnostics::unreadable(root, error)),
        };
        self.exceeds_dir_limit = false;
        self.is_open = false;
        self.dirs = vec![ScannedDir::unusable(&PendingDir::root(root.clone()), None, diagnostic)];
    }
}

/// The result of [`scan_trees`].
pub(crate) struct ScannedTrees {
    /// Ordered by path.
    pub(crate) dirs: Vec<ScannedDir>,
    /// Whether there are more directories than the limit.
    pub(crate) exceeds_dir_limit: bool,
}

/// Scans directories and everything below them, but at most `max_dirs` directories.
pub(crate) fn scan_trees(scanner: &DirScanner<'_>, roots: Vec<PendingDir>, max_dirs: usize) -> ScannedTrees {
    let mut dirs = Vec::new();
    let mut exceeds_dir_limit = false;
    let mut level = roots;
    while !level.is_empty() {
        let remaining = max_dirs.saturating_sub(dirs.len());
        exceeds_dir_limit |= level.len() > remaining;
        level.truncate(remaining);
        let scans = map_in_order(&level, scanner.options().threads, Vec::new, |buffer, pending| {
            scanner.scan_dir(pending, buffer)
        });
        let mut next_level = Vec::new();
        for (scan, pending) in scans.into_iter().zip(&level) {
            match scan {
                DirScan::Scanned(dir, subdirectories) => {
                    dirs.push(dir);
                    next_level.extend(subdirectories);
                }
                DirScan::Missing => {
                    let diagnostic = scan_diagnostics::vanished(&pending.dir);
                    dirs.push(ScannedDir::unusable(pending, None, Some(diagnostic)));
                }
            }
        }
        level = next_level;
    }
    // Each level is sorted already, so the stable sort merges a few sorted runs.
    dirs.sort_by(|a, b| compare_paths(a.dir(), b.dir()));
    ScannedTrees {
        dirs,
        exceeds_dir_limit,
    }
}

fn scan_embedded(skills: &'static EmbeddedSkills, info: &Arc<SourceInfo>) -> Vec<ScannedDir> {
    let mut sorted: Vec<_> = skills.skills().collect();
    sorted.sort_by_key(|skill| skill.directory());
    sorted
        .into_iter()
        .map(|skill| {
            let path = skill.display_path();
            let parsed = parse_lenient(&path, skill.directory(), skill.skill_md());
            let mut diagnostics = DirDiagnostics::default();
            diagnostics.extend(parsed.diagnostics);
            let kind = match parsed.meta {
                Some(meta) => DirKind::EmbeddedSkill {
                    entry: Arc::new(SkillEntry::embedded(meta, skill, info.clone())),
                },
                None => DirKind::Unusable {
                    dir: path.into(),
                    stamp: None,
                    dir_stamp: None,
                    unloaded: None,
                },
            };
            ScannedDir {
                kind,
                depth: 1,
                is_in_skill: false,
                diagnostics,
            }
        })
        .collect()
}
