//! All that a skill consists of: the files that are staged, hashed and searched for docs.
//!
//! Left out are `.git`, which differs from one checkout to the next and may hold credentials, and `__pycache__`,
//! which running the skill fills; links that lead out of the skill or nowhere; FIFOs, sockets and devices. Each
//! but the first two is told by a diagnostic. A link that stays inside is an entry of its own and is not
//! followed, so that no file is met twice and no loop is walked.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, openat, readlinkat, statat};
use rustix::io::Errno;
use skillbox_model::{Diagnostic, RelPath};

use crate::contained::{ContainedDir, OpenError};
use crate::listing::{Name, NameKind, list};
use crate::scan_note;
use crate::skill_dir::{Backing, SkillDir, SkillReadError};

/// Deeper trees are not followed: no skill needs it, and every level holds a descriptor.
const MAX_DEPTH: usize = 64;
/// Nor are trees of more entries.
const MAX_ENTRIES: usize = 100_000;

/// Names that are no part of a skill, wherever they lie in it.
pub(crate) fn is_left_out(name: &[u8]) -> bool {
    matches!(name, b".git" | b"__pycache__")
}

/// One entry of a skill's tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    /// Its path below the skill.
    pub path: RelPath,
    /// What it is.
    pub kind: TreeEntryKind,
}

/// What an entry of a skill's tree is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeEntryKind {
    /// A regular file.
    File {
        /// Whether its owner may execute it.
        executable: bool,
        /// Its size in bytes.
        size: u64,
    },
    /// A directory.
    Dir,
    /// A link that stays inside the skill, with its text.
    Link {
        /// Relative to the directory that the link is in.
        target: Box<[u8]>,
    },
}

/// A skill's tree, with what is no part of it.
#[derive(Debug)]
pub struct SkillTree {
    /// Sorted by the bytes of the path.
    pub entries: Vec<TreeEntry>,
    /// What was left out, and why.
    pub left_out: Vec<Diagnostic>,
}

impl SkillDir {
    /// Everything that the skill consists of, sorted by path.
    pub fn files(&self) -> Result<Vec<TreeEntry>, SkillReadError> {
        self.tree().map(|tree| tree.entries)
    }

    /// The same, with what was left out and why.
    pub fn tree(&self) -> Result<SkillTree, SkillReadError> {
        let mut tree = match &self.backing {
            Backing::Disk(directory) => {
                let mut walk = Walk {
                    skill: self,
                    directory,
                    entries: Vec::new(),
                    left_out: Vec::new(),
                };
                let root = directory
                    .for_listing()
                    .map_err(|error| self.failed(Path::new(""), error))?;
                walk.enter(root.as_fd(), None, 0)?;
                SkillTree {
                    entries: walk.entries,
                    left_out: walk.left_out,
                }
            }
            Backing::Embedded(skill) => embedded_tree(*skill),
        };
        tree.entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
    }
}

struct Walk<'a> {
    skill: &'a SkillDir,
    directory: &'a ContainedDir,
    entries: Vec<TreeEntry>,
    left_out: Vec<Diagnostic>,
}

impl Walk<'_> {
    fn enter(&mut self, here: BorrowedFd<'_>, path: Option<&RelPath>, depth: usize) -> Result<(), SkillReadError> {
        let listing = list(here, |name, _| !is_left_out(name));
        if let Some(error) = listing.broke_off {
            return Err(self.skill.failed(path.map_or(Path::new(""), RelPath::as_path), error));
        }
        for name in listing.names {
            self.add(here, path, &name, depth)?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        here: BorrowedFd<'_>,
        parent: Option<&RelPath>,
        name: &Name,
        depth: usize,
    ) -> Result<(), SkillReadError> {
        let bytes: &[u8] = &name.bytes;
        let path = match parent {
            Some(parent) => [parent.as_bytes(), bytes].join(&b'/'),
            None => bytes.to_vec(),
        };
        // The kernel gives only names that fit; what can be too long is the whole path.
        let path = RelPath::parse(path).map_err(|_| self.too_large(MAX_DEPTH, "levels of directories"))?;
        if self.entries.len() >= MAX_ENTRIES {
            return Err(self.too_large(MAX_ENTRIES, "files"));
        }
        match name.kind {
            NameKind::Special => self.left_out.push(scan_note::special_file(&self.shown(&path))),
            NameKind::Link => self.add_link(here, bytes, path)?,
            NameKind::File => {
                let Some(stat) = self.present(statat(here, bytes, AtFlags::SYMLINK_NOFOLLOW), &path)? else {
                    return Ok(());
                };
                self.entries.push(TreeEntry {
                    path,
                    kind: TreeEntryKind::File {
                        executable: stat.st_mode & 0o100 != 0,
                        size: u64::try_from(stat.st_size).unwrap_or(0),
                    },
                });
            }
            NameKind::Directory => {
                if depth >= MAX_DEPTH {
                    return Err(self.too_large(MAX_DEPTH, "levels of directories"));
                }
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let Some(below) = self.present(openat(here, bytes, flags, Mode::empty()), &path)? else {
                    return Ok(());
                };
                self.entries.push(TreeEntry {
                    path: path.clone(),
                    kind: TreeEntryKind::Dir,
                });
                self.enter(below.as_fd(), Some(&path), depth + 1)?;
            }
        }
        Ok(())
    }

    fn add_link(&mut self, here: BorrowedFd<'_>, name: &[u8], path: RelPath) -> Result<(), SkillReadError> {
        let note = match self.directory.open_beneath(path.as_bytes(), OFlags::PATH) {
            Ok(_) => {
                let Some(target) = self.present(readlinkat(here, name, Vec::new()), &path)? else {
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
            Err(OpenError::Leaves) => scan_note::link_leaves_skill(&self.shown(&path)),
            Err(OpenError::System(error)) => match Errno::from_io_error(&error) {
                Some(Errno::NOENT | Errno::NOTDIR) => scan_note::dangling_link(&self.shown(&path)),
                Some(Errno::LOOP) => scan_note::link_loop(&self.shown(&path)),
                _ => return Err(self.skill.failed(path.as_path(), error)),
            },
        };
        self.left_out.push(note);
        Ok(())
    }

    /// What vanished after it was listed is no part of the tree; whatever replaced it is not followed.
    fn present<T>(&self, result: rustix::io::Result<T>, path: &RelPath) -> Result<Option<T>, SkillReadError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::INVAL) => Ok(None),
            Err(error) => Err(self.skill.failed(path.as_path(), error.into())),
        }
    }

    fn shown(&self, path: &RelPath) -> std::path::PathBuf {
        self.skill.shown.join(path.as_path())
    }

    fn too_large(&self, limit: usize, what: &'static str) -> SkillReadError {
        SkillReadError::TreeTooLarge {
            skill: self.skill.shown.clone(),
            limit,
            what,
        }
    }
}

fn embedded_tree(skill: crate::embedded::EmbeddedSkill) -> SkillTree {
    let mut entries: Vec<TreeEntry> = Vec::new();
    for (path, file) in skill.files() {
        let Ok(path) = RelPath::parse(path) else { continue };
        let mut above = path.parent();
        while let Some(dir) = above {
            if entries.iter().any(|entry| entry.path == dir) {
                break;
            }
            above = dir.parent();
            entries.push(TreeEntry {
                path: dir,
                kind: TreeEntryKind::Dir,
            });
        }
        entries.push(TreeEntry {
            path,
            kind: TreeEntryKind::File {
                executable: file.executable,
                size: file.bytes.len() as u64,
            },
        });
    }
    SkillTree {
        entries,
        left_out: Vec::new(),
    }
}

/// The name of a file as bytes, for tests on its ending.
pub(crate) fn has_suffix(path: &RelPath, suffixes: &[&str]) -> bool {
    Path::new(OsStr::from_bytes(path.file_name()))
        .extension()
        .is_some_and(|extension| suffixes.iter().any(|suffix| extension.eq_ignore_ascii_case(suffix)))
}
