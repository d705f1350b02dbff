//! Scans a directory with a SKILL.md, and finds the directories inside it, where there may be further skills.

use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, statat};
use skillbox_model::Diagnostic;

use super::dir_scanner::{DirScan, DirScanner, IsLink};
use super::parse_skill_md::{ScannedContent, parse_skill_md};
use super::pending_dir::PendingDir;
use super::scanned_dir::{DirDiagnostics, DirKind, ScannedDir, UnloadedContent};
use super::skill_md_file::SkillMdFile;
use super::subdirectories::list_subdirectories;
use crate::diagnostics::scan_diagnostics;
use crate::fs::FileStamp;
use crate::skill::SkillEntry;

impl DirScanner<'_> {
    pub(super) fn scan_skill(
        &self,
        pending: &PendingDir,
        path: &Path,
        file: &SkillMdFile,
        link: IsLink,
        buffer: &mut Vec<u8>,
    ) -> DirScan {
        let stamp = FileStamp::new(&file.stat);
        let dir_name = pending.dir.file_name().unwrap_or_default().to_string_lossy();
        let parsed = match parse_skill_md(file, path, &dir_name, self.options().metadata_fallback, buffer) {
            Ok(parsed) => parsed,
            Err(error) => {
                let diagnostic = scan_diagnostics::unreadable(path, &error);
                return self.scan_unusable_skill(pending, path, Some(stamp), diagnostic);
            }
        };
        let (dir_stamp, subdirectories) = self.scan_subdirectories(pending);
        let kind = match parsed.content {
            ScannedContent::Usable(meta) => DirKind::Skill {
                entry: Arc::new(SkillEntry::on_disk(*meta, path.into(), self.source.clone())),
                stamp,
                is_link: link == IsLink::Yes,
                dir_stamp,
            },
            ScannedContent::Unusable(unloaded) => DirKind::Unusable {
                dir: pending.dir.as_path().into(),
                stamp: Some(stamp).filter(|_| link == IsLink::No),
                dir_stamp,
                unloaded: Some(unloaded),
            },
        };
        let mut diagnostics = DirDiagnostics::default();
        diagnostics.extend(parsed.diagnostics);
        let scanned = ScannedDir {
            kind,
            depth: pending.depth,
            is_in_skill: pending.is_in_skill,
            diagnostics,
        };
        DirScan::Scanned(scanned, subdirectories)
    }

    /// Scans a directory whose SKILL.md exists but cannot be used.
    pub(super) fn scan_unusable_skill(
        &self,
        pending: &PendingDir,
        path: &Path,
        stamp: Option<FileStamp>,
        diagnostic: Diagnostic,
    ) -> DirScan {
        let (dir_stamp, subdirectories) = self.scan_subdirectories(pending);
        let mut diagnostics = DirDiagnostics::default();
        diagnostics.push(diagnostic);
        let scanned = ScannedDir {
            kind: DirKind::Unusable {
                dir: pending.dir.as_path().into(),
                stamp,
                dir_stamp,
                unloaded: Some(Box::new(UnloadedContent::new(path))),
            },
            depth: pending.depth,
            is_in_skill: pending.is_in_skill,
            diagnostics,
        };
        DirScan::Scanned(scanned, subdirectories)
    }

    /// Returns the directories in a skill, and the stamp that tells when they must be listed again.
    fn scan_subdirectories(&self, pending: &PendingDir) -> (Option<FileStamp>, Vec<PendingDir>) {
        let relative = self.relative(&pending.dir);
        if pending.depth >= self.options().max_depth {
            return (None, Vec::new());
        }
        // The stamp is taken before the listing, so that the next rescan detects a change during the listing.
        let Ok(stat) = statat(self.root(), relative, AtFlags::empty()) else {
            return (None, Vec::new());
        };
        let dirs = match self.link_counts.excludes_subdirectories(&stat) {
            true => Vec::new(),
            false => list_subdirectories(self.root(), relative, &pending.dir),
        };
        let pending_dirs = dirs.into_iter().map(|dir| PendingDir {
            dir,
            depth: pending.depth + 1,
            is_in_skill: true,
            // Without links, there are no loops.
            ancestors: None,
        });
        (Some(FileStamp::new(&stat)), pending_dirs.collect())
    }
}
