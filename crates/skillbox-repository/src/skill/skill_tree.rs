//! The tree of a skill: the entries that a run receives and that the digest and the list of documents cover.
//!
//! The tree excludes `.git` and `__pycache__` silently. It also excludes links that point outside the skill or to
//! nothing, FIFOs, sockets and devices, and reports each of them. A link that stays inside is an entry of its own and
//! is not followed, so that no file occurs twice and link loops are harmless.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, openat, readlinkat, statat};
use rustix::io::Errno;
use skillbox_model::{Diagnostic, RelPath};

use super::embedded::EmbeddedSkill;
use super::excluded_names::is_excluded_name;
use super::read_error::SkillReadError;
use super::skill_dir::{SkillDir, Storage};
use crate::diagnostics::scan_diagnostics;
use crate::fs::{ContainedDir, DirEntry, EntryKind, OpenError, list_dir};

/// The maximum depth of a tree: no skill needs more, and every level keeps a descriptor open.
const MAX_DEPTH: usize = 64;

/// One entry in the tree of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    /// The path below the skill.
    pub path: RelPath,
    /// The type of the entry.
    pub kind: TreeEntryKind,
}

/// The type of an entry in the tree of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeEntryKind {
    /// A regular file.
    File {
        /// Whether the owner may execute the file.
        is_executable: bool,
        /// The size in bytes.
        size: u64,
    },
    /// A directory.
    Dir,
    /// A link that stays inside the skill.
    Link {
        /// The target, relative to the directory of the link.
        target: Box<[u8]>,
    },
}

/// The tree of a skill, and what it excludes.
#[derive(Debug)]
pub struct SkillTree {
    /// The entries, sorted by the bytes of the path.
    pub entries: Vec<TreeEntry>,
    /// A diagnostic for each excluded entry.
    pub exclusions: Vec<Diagnostic>,
}

impl SkillDir {
    /// Reads the tree and returns only its entries, sorted by path.
    pub fn tree_entries(&self) -> Result<Vec<TreeEntry>, SkillReadError> {
        self.read_tree().map(|tree| tree.entries)
    }

    /// Reads the tree of the skill, and a diagnostic for each entry that it excludes.
    pub fn read_tree(&self) -> Result<SkillTree, SkillReadError> {
        let mut tree = match &self.storage {
            Storage::Disk(directory) => {
                let mut walk = TreeWalk {
                    skill: self,
                    directory,
                    entries: Vec::new(),
                    exclusions: Vec::new(),
                    bytes: 0,
                };
                let root = directory
                    .open_for_listing()
                    .map_err(|error| self.io_error(Path::new(""), error))?;
                walk.add_entries(root.as_fd(), None, 0)?;
                SkillTree {
                    entries: walk.entries,
                    exclusions: walk.exclusions,
                }
            }
            Storage::Embedded(skill) => embedded_tree(*skill),
        };
        tree.entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
    }
}

struct TreeWalk<'a> {
    skill: &'a SkillDir,
    directory: &'a ContainedDir,
    entries: Vec<TreeEntry>,
    exclusions: Vec<Diagnostic>,
    /// The sizes of all files.
    bytes: u64,
}

impl TreeWalk<'_> {
    fn add_entries(
        &mut self,
        dir_fd: BorrowedFd<'_>,
        path: Option<&RelPath>,
        depth: usize,
    ) -> Result<(), SkillReadError> {
        // One name more than allowed is kept, which makes the tree too large.
        let mut names_left = self
            .skill
            .limits
            .files
            .saturating_add(1)
            .saturating_sub(self.entries.len());
        let listing = list_dir(dir_fd, |name, _| {
            let keep = names_left > 0 && !is_excluded_name(name);
            names_left -= usize::from(keep);
            keep
        });
        if let Some(error) = listing.error {
            return Err(self.skill.io_error(path.map_or(Path::new(""), RelPath::as_path), error));
        }
        for entry in listing.entries {
            self.add_entry(dir_fd, path, &entry, depth)?;
        }
        Ok(())
    }

    fn add_entry(
        &mut self,
        dir_fd: BorrowedFd<'_>,
        parent: Option<&RelPath>,
        entry: &DirEntry,
        depth: usize,
    ) -> Result<(), SkillReadError> {
        let name: &[u8] = &entry.name;
        let path = match parent {
            Some(parent) => [parent.as_bytes(), name].join(&b'/'),
            None => name.to_vec(),
        };
        // Names from the kernel are valid; only the whole path can be too long.
        let path = RelPath::parse(path).map_err(|_| self.too_large(MAX_DEPTH as u64, "levels of directories"))?;
        if self.entries.len() + self.exclusions.len() >= self.skill.limits.files {
            return Err(self.too_large(self.skill.limits.files as u64, "files (setting max_skill_files)"));
        }
        match entry.kind {
            EntryKind::Special => self
                .exclusions
                .push(scan_diagnostics::special_file(&self.display_path(&path))),
            EntryKind::Link => self.add_link(dir_fd, name, path)?,
            EntryKind::File => {
                let Some(stat) = self.ignore_removed(statat(dir_fd, name, AtFlags::SYMLINK_NOFOLLOW), &path)? else {
                    return Ok(());
                };
                let size = u64::try_from(stat.st_size).unwrap_or(0);
                self.check_size(&path, size)?;
                self.entries.push(TreeEntry {
                    path,
                    kind: TreeEntryKind::File {
                        is_executable: stat.st_mode & 0o100 != 0,
                        size,
                    },
                });
            }
            EntryKind::Directory => {
                if depth >= MAX_DEPTH {
                    return Err(self.too_large(MAX_DEPTH as u64, "levels of directories"));
                }
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let Some(subdirectory) = self.ignore_removed(openat(dir_fd, name, flags, Mode::empty()), &path)? else {
                    return Ok(());
                };
                self.entries.push(TreeEntry {
                    path: path.clone(),
                    kind: TreeEntryKind::Dir,
                });
                self.add_entries(subdirectory.as_fd(), Some(&path), depth + 1)?;
            }
        }
        Ok(())
    }

    fn add_link(&mut self, dir_fd: BorrowedFd<'_>, name: &[u8], path: RelPath) -> Result<(), SkillReadError> {
        let diagnostic = match self.directory.open_beneath(path.as_bytes(), OFlags::PATH) {
            Ok(_) => {
                let Some(target) = self.ignore_removed(readlinkat(dir_fd, name, Vec::new()), &path)? else {
                    return Ok(());
                };
                self.entries.push(TreeEntry {
                    path,
                    kind: TreeEntryKind::Link {
                        target: target.into_bytes().into(),
                    },
                });
                return Ok(());
            }
            Err(OpenError::Outside) => scan_diagnostics::link_leaves_skill(&self.display_path(&path)),
            Err(OpenError::System(error)) => match Errno::from_io_error(&error) {
                Some(Errno::NOENT | Errno::NOTDIR) => scan_diagnostics::dangling_link(&self.display_path(&path)),
                Some(Errno::LOOP) => scan_diagnostics::link_loop(&self.display_path(&path)),
                _ => return Err(self.skill.io_error(path.as_path(), error)),
            },
        };
        self.exclusions.push(diagnostic);
        Ok(())
    }

    /// Returns `None` if the entry was removed, or replaced by another type, after it was listed.
    fn ignore_removed<T>(&self, result: rustix::io::Result<T>, path: &RelPath) -> Result<Option<T>, SkillReadError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::INVAL) => Ok(None),
            Err(error) => Err(self.skill.io_error(path.as_path(), error.into())),
        }
    }

    fn display_path(&self, path: &RelPath) -> PathBuf {
        self.skill.display_path.join(path.as_path())
    }

    fn check_size(&mut self, path: &RelPath, size: u64) -> Result<(), SkillReadError> {
        let limits = self.skill.limits;
        self.bytes = self.bytes.saturating_add(size);
        if size > limits.file_bytes {
            return Err(SkillReadError::FileTooLarge {
                path: self.display_path(path),
                size,
                limit: limits.file_bytes,
            });
        }
        if self.bytes > limits.bytes {
            return Err(self.too_large(limits.bytes, "bytes (setting max_skill_bytes)"));
        }
        Ok(())
    }

    fn too_large(&self, limit: u64, what: &'static str) -> SkillReadError {
        SkillReadError::TreeTooLarge {
            skill: self.skill.display_path.clone(),
            limit,
            what,
        }
    }
}

fn embedded_tree(skill: EmbeddedSkill) -> SkillTree {
    let mut entries: Vec<TreeEntry> = Vec::new();
    for (path, file) in skill.files() {
        let Ok(path) = RelPath::parse(path) else { continue };
        let mut parent = path.parent();
        while let Some(dir) = parent {
            if entries.iter().any(|entry| entry.path == dir) {
                break;
            }
            parent = dir.parent();
            entries.push(TreeEntry {
                path: dir,
                kind: TreeEntryKind::Dir,
            });
        }
        entries.push(TreeEntry {
            path,
            kind: TreeEntryKind::File {
                is_executable: file.is_executable,
                size: file.bytes.len() as u64,
            },
        });
    }
    SkillTree {
        entries,
        exclusions: Vec::new(),
    }
}
