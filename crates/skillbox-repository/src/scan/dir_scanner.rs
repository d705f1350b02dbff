//! Scans one directory and classifies it as a skill, a group of directories, or unusable.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;
use skillbox_model::Diagnostic;

use super::options::ScanOptions;
use super::pending_dir::{Ancestors, PendingDir};
use super::scanned_dir::{DirDiagnostics, DirKind, ScannedDir};
use super::skill_md_file::{OpenResult, open_linked_skill_md, open_skill_md};
use super::skipped_names::is_skipped_name;
use super::subdirectories::LinkCounts;
use crate::diagnostics::scan_diagnostics;
use crate::fs::{ContainedDir, DirEntry, EntryKind, FileStamp, file_identity, list_dir};
use crate::parse::{SKILL_MD_NAMES, is_skill_md_name};
use crate::skill::SourceInfo;

/// Scans the directories of one source, relative to the descriptor of its root.
pub(crate) struct DirScanner<'a> {
    root: OwnedFd,
    pub(super) link_counts: LinkCounts,
    pub(super) source: &'a Arc<SourceInfo>,
    options: &'a ScanOptions,
}

/// The result of scanning one directory.
pub(crate) enum DirScan {
    /// The directory exists. The directories below it must be scanned next, in this order.
    Scanned(ScannedDir, Vec<PendingDir>),
    /// The directory does not exist, or no longer exists.
    Missing,
}

impl<'a> DirScanner<'a> {
    /// Opens the directory of a source, following links in its path.
    pub(crate) fn open(source: &'a Arc<SourceInfo>, options: &'a ScanOptions) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(rustix::fs::CWD, &source.root, flags, Mode::empty())?;
        let link_counts = LinkCounts::of_source(root.as_fd());
        Ok(Self {
            root,
            link_counts,
            source,
            options,
        })
    }

    pub(crate) fn options(&self) -> &ScanOptions {
        self.options
    }

    pub(crate) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Makes `path` relative to the descriptor of the source.
    pub(crate) fn relative<'p>(&self, path: &'p Path) -> &'p [u8] {
        let bytes = path.as_os_str().as_bytes();
        let rest = &bytes[self.source.root.as_os_str().len().min(bytes.len())..];
        match rest.strip_prefix(b"/").unwrap_or(rest) {
            b"" => b".",
            relative => relative,
        }
    }

    /// Scans one directory. `buffer` is scratch space that scans of one thread share.
    pub(crate) fn scan_dir(&self, pending: &PendingDir, buffer: &mut Vec<u8>) -> DirScan {
        // This is taken before the search for a SKILL.md, so that the next rescan detects a file created in between.
        let leaf = self.stat_leaf(pending);
        let path = pending.dir.join(SKILL_MD_NAMES[0]);
        match open_skill_md(self.root(), self.relative(&path), &path) {
            OpenResult::Missing => match leaf {
                Some(stat) if !self.has_other_skill_md(pending) => {
                    self.scan_group(pending, &stat, &[], DirDiagnostics::default())
                }
                _ => self.scan_without_skill_md(pending, buffer),
            },
            OpenResult::NotADirectory => DirScan::Missing,
            // `ELOOP` means that the file is a link, or that links in its path form a loop. Opening the directory
            // distinguishes the two.
            OpenResult::Link => match self.open_directory(pending) {
                Ok(directory) => self.scan_linked_skill_md(pending, &directory, &path, buffer),
                Err(missing_or_unreadable) => *missing_or_unreadable,
            },
            opened => self.scan_open_result(pending, &path, opened, IsLink::No, buffer),
        }
    }

    fn scan_without_skill_md(&self, pending: &PendingDir, buffer: &mut Vec<u8>) -> DirScan {
        match self.open_directory(pending) {
            Ok(directory) => self.scan_listing(pending, &directory, buffer),
            Err(missing_or_unreadable) => *missing_or_unreadable,
        }
    }

    /// The `stat` of a directory inside a skill that certainly contains no directories.
    fn stat_leaf(&self, pending: &PendingDir) -> Option<Stat> {
        if !pending.is_in_skill {
            return None;
        }
        let stat = statat(self.root(), self.relative(&pending.dir), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        (is_directory && self.link_counts.excludes_subdirectories(&stat)).then_some(stat)
    }

    /// Whether a directory contains a SKILL.md in the other spelling.
    fn has_other_skill_md(&self, pending: &PendingDir) -> bool {
        let path = pending.dir.join(SKILL_MD_NAMES[1]);
        statat(self.root(), self.relative(&path), AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    fn scan_listing(&self, pending: &PendingDir, directory: &ContainedDir, buffer: &mut Vec<u8>) -> DirScan {
        // The stamp is taken before the listing, so that the next rescan detects a change during the listing.
        let stat = match fstat(directory.descriptor()) {
            Ok(stat) => stat,
            Err(error) => return unreadable(pending, &error.into()),
        };
        let listing = list_dir(directory.descriptor(), |name, kind| match kind {
            _ if is_skill_md_name(name) => true,
            EntryKind::Directory => !is_skipped_name(name),
            EntryKind::Link => !pending.is_in_skill && !is_skipped_name(name),
            _ => false,
        });
        // `SKILL.md` sorts before `skill.md`. If it is listed, it was created after the attempt to open it.
        if let Some(entry) = listing.entries.iter().find(|entry| is_skill_md_name(&entry.name)) {
            let path = pending.dir.join(OsStr::from_bytes(&entry.name));
            return match open_skill_md(self.root(), self.relative(&path), &path) {
                OpenResult::Link => self.scan_linked_skill_md(pending, directory, &path, buffer),
                OpenResult::Missing => unusable(pending, None, scan_diagnostics::vanished(&path)),
                opened => self.scan_open_result(pending, &path, opened, IsLink::No, buffer),
            };
        }
        let mut diagnostics = DirDiagnostics::default();
        match listing.error {
            // `getdents64` returns `ENOENT` for an open directory that was removed.
            Some(error) if error.kind() == io::ErrorKind::NotFound => return DirScan::Missing,
            Some(error) => diagnostics.push(scan_diagnostics::unreadable(&pending.dir, &error)),
            None => {}
        }
        self.scan_group(pending, &stat, &listing.entries, diagnostics)
    }

    fn scan_group(
        &self,
        pending: &PendingDir,
        stat: &Stat,
        entries: &[DirEntry],
        mut diagnostics: DirDiagnostics,
    ) -> DirScan {
        let identity = file_identity(stat);
        let mut subdirectories = Vec::new();
        let mut exceeds_depth = false;
        if Ancestors::contains(pending.ancestors.as_ref(), identity) {
            diagnostics.push(scan_diagnostics::link_loop(&pending.dir));
        } else {
            let ancestors = Ancestors::new(identity, pending.ancestors.clone());
            subdirectories = entries
                .iter()
                .map(|entry| (entry.kind, pending.dir.join(OsStr::from_bytes(&entry.name))))
                .filter(|(kind, dir)| *kind == EntryKind::Directory || self.should_follow_link(dir))
                .map(|(_, dir)| PendingDir {
                    dir,
                    depth: pending.depth + 1,
                    is_in_skill: pending.is_in_skill,
                    ancestors: Some(ancestors.clone()),
                })
                .collect();
            if pending.depth >= self.options.max_depth {
                // Files of a skill may be nested deeply, and rarely contain other skills.
                exceeds_depth = !subdirectories.is_empty() && !pending.is_in_skill;
                subdirectories.clear();
            }
        }
        let kind = DirKind::Group {
            dir: pending.dir.as_path().into(),
            stamp: Some(FileStamp::new(stat)),
            exceeds_depth,
        };
        let scanned = ScannedDir {
            kind,
            depth: pending.depth,
            is_in_skill: pending.is_in_skill,
            diagnostics,
        };
        DirScan::Scanned(scanned, subdirectories)
    }

    /// Whether a link points to a directory or cannot be resolved. If it cannot be resolved, the scan reports it.
    pub(crate) fn should_follow_link(&self, link: &Path) -> bool {
        match statat(self.root(), self.relative(link), AtFlags::empty()) {
            Ok(stat) => FileType::from_raw_mode(stat.st_mode) == FileType::Directory,
            Err(error) => error != Errno::NOTDIR,
        }
    }

    fn scan_linked_skill_md(
        &self,
        pending: &PendingDir,
        directory: &ContainedDir,
        path: &Path,
        buffer: &mut Vec<u8>,
    ) -> DirScan {
        let name = path.file_name().unwrap_or_default();
        let opened = open_linked_skill_md(directory, name, path);
        self.scan_open_result(pending, path, opened, IsLink::Yes, buffer)
    }

    fn scan_open_result(
        &self,
        pending: &PendingDir,
        path: &Path,
        opened: OpenResult,
        link: IsLink,
        buffer: &mut Vec<u8>,
    ) -> DirScan {
        match opened {
            OpenResult::File(file) => self.scan_skill(pending, path, &file, link, buffer),
            OpenResult::Rejected(diagnostic, stat) => {
                let stamp = stat.filter(|_| link == IsLink::No).map(|stat| FileStamp::new(&stat));
                self.scan_unusable_skill(pending, path, stamp, diagnostic)
            }
            OpenResult::Missing | OpenResult::NotADirectory | OpenResult::Link => {
                unusable(pending, None, scan_diagnostics::vanished(path))
            }
            OpenResult::Failed(error) => {
                // The error may concern the file or its directory.
                match statat(self.root(), self.relative(path), AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => self.scan_unusable_skill(
                        pending,
                        path,
                        Some(FileStamp::new(&stat)),
                        scan_diagnostics::unreadable(path, &error),
                    ),
                    Err(_) => unreadable(pending, &error),
                }
            }
        }
    }

    fn open_directory(&self, pending: &PendingDir) -> Result<ContainedDir, Box<DirScan>> {
        let relative = self.relative(&pending.dir);
        ContainedDir::open_at(self.root(), relative)
            .map_err(|error| Box::new(self.scan_without_directory(pending, &error)))
    }

    /// The result for a directory that cannot be opened.
    fn scan_without_directory(&self, pending: &PendingDir, error: &io::Error) -> DirScan {
        match Errno::from_io_error(error) {
            Some(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => {
                match statat(self.root(), self.relative(&pending.dir), AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => {
                        let diagnostic = match error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) {
                            true => scan_diagnostics::link_loop(&pending.dir),
                            false => scan_diagnostics::dangling_link(&pending.dir),
                        };
                        unusable(pending, None, diagnostic)
                    }
                    _ => DirScan::Missing,
                }
            }
            _ => unreadable(pending, error),
        }
    }
}

/// Whether a SKILL.md is a link.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IsLink {
    No,
    Yes,
}

fn unusable(pending: &PendingDir, stamp: Option<FileStamp>, diagnostic: Diagnostic) -> DirScan {
    let scanned = ScannedDir::unusable(pending, stamp, Some(diagnostic));
    DirScan::Scanned(scanned, Vec::new())
}

fn unreadable(pending: &PendingDir, error: &io::Error) -> DirScan {
    unusable(pending, None, scan_diagnostics::unreadable(&pending.dir, error))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::skill::{Scope, Source};

    #[test]
    fn a_directory_removed_while_open_is_missing_and_not_unreadable() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("skill");
        fs::create_dir(&dir).unwrap();
        let source = Source::Directory {
            path: parent.path().to_owned(),
            scope: Scope::User,
        };
        let source = source.info(0, crate::skill::SkillLimits::default());
        let options = ScanOptions::default();
        let scanner = DirScanner::open(&source, &options).unwrap();
        let pending = PendingDir {
            dir: dir.clone(),
            depth: 1,
            is_in_skill: false,
            ancestors: None,
        };
        let Ok(open) = scanner.open_directory(&pending) else {
            panic!("the directory cannot be opened");
        };
        assert!(matches!(
            scanner.scan_listing(&pending, &open, &mut Vec::new()),
            DirScan::Scanned(..)
        ));
        fs::remove_dir(&dir).unwrap();
        assert!(matches!(
            scanner.scan_listing(&pending, &open, &mut Vec::new()),
            DirScan::Missing
        ));
    }
}
