//! Finding what the globs match, in bounded time and memory, following nothing.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;
use skillbox_model::{RefusedOutput, RelPath};

use super::{Workspace, beneath};
use crate::job::OutputGlobs;

/// Deepest directory that is looked into.
const MAX_DEPTH: usize = 64;
/// Most entries that are looked at, more than any workspace of the shipped profiles can hold.
const MAX_ENTRIES: u64 = 1_000_000;
/// So many refusals are named; the rest is counted.
pub(super) const NAMED_REFUSALS: usize = 100;

/// What the globs match: files in order of their names, and what is refused.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    pub files: BTreeMap<RelPath, u64>,
    pub refused: Vec<RefusedOutput>,
    pub refused_unnamed: u64,
    keep: usize,
    seen: u64,
    device: u64,
}

impl Candidates {
    /// Walks only the directories below which something can match, and keeps at most `max_files` and the named
    /// refusals after them, however many there are.
    pub(super) fn find(workspace: &Workspace, globs: &OutputGlobs, max_files: usize) -> rustix::io::Result<Self> {
        let mut found = Self {
            keep: max_files.saturating_add(NAMED_REFUSALS),
            device: rustix::fs::fstat(workspace.root())?.st_dev,
            ..Self::default()
        };
        for root in globs.roots() {
            let Ok(path) = RelPath::parse(root) else {
                found.walk(workspace.root(), None, globs, 0);
                continue;
            };
            match beneath::open_directory(workspace.root(), &path) {
                Ok(directory) => found.walk(directory.as_fd(), Some(&path), globs, 0),
                Err(Errno::NOENT) => {}
                Err(Errno::NOTDIR | Errno::LOOP) => found.refuse(&path, "not a directory, or behind a link"),
                Err(error) => found.refuse(&path, &format!("cannot be opened: {error}")),
            }
        }
        Ok(found)
    }

    pub(super) fn refuse(&mut self, path: &RelPath, reason: &str) {
        if self.refused.len() < NAMED_REFUSALS {
            let name = path.to_string();
            self.refused.push(RefusedOutput {
                name,
                reason: reason.to_owned(),
            });
        } else {
            self.refused_unnamed += 1;
        }
    }

    fn walk(&mut self, directory: BorrowedFd<'_>, path: Option<&RelPath>, globs: &OutputGlobs, depth: usize) {
        let entries = match rustix::fs::Dir::read_from(directory) {
            Ok(entries) => entries,
            Err(error) => {
                if let Some(path) = path {
                    self.refuse(path, &format!("cannot be listed: {error}"));
                }
                return;
            }
        };
        for entry in entries.flatten() {
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            self.seen += 1;
            if self.seen > MAX_ENTRIES {
                self.refused_unnamed += 1;
                return;
            }
            let Ok(child) =
                RelPath::parse(name).and_then(|name| path.map_or(Ok(name.clone()), |path| path.join(&name)))
            else {
                self.refused_unnamed += 1;
                continue;
            };
            match beneath::stat_child(directory, name) {
                Ok(stat) => self.consider(directory, name, &child, &stat, globs, depth),
                Err(error) if globs.matches(&child) => self.refuse(&child, &format!("cannot be looked at: {error}")),
                Err(_) => {}
            }
        }
    }

    fn consider(
        &mut self,
        directory: BorrowedFd<'_>,
        name: &[u8],
        path: &RelPath,
        stat: &Stat,
        globs: &OutputGlobs,
        depth: usize,
    ) {
        if beneath::file_type(stat) == FileType::Directory {
            if stat.st_dev != self.device {
                // A mount, such as a skill or a linked input: the caller has it already.
                return;
            }
            if depth >= MAX_DEPTH {
                self.refuse(path, "nested too deep");
                return;
            }
            match open_even_unreadable(directory, name) {
                Ok(below) => self.walk(below.as_fd(), Some(path), globs, depth + 1),
                Err(error) => self.refuse(path, &format!("cannot be opened: {error}")),
            }
            return;
        }
        if !globs.matches(path) {
            return;
        }
        match reason_to_refuse(stat, self.device) {
            Some(reason) => self.refuse(path, reason),
            // A report is text: a name that it could only show changed would name no file.
            None if path.to_str().is_none() => self.refuse(path, "its name is not valid UTF-8"),
            None => {
                self.files
                    .insert(path.clone(), u64::try_from(stat.st_size).unwrap_or(0));
                if self.files.len() > self.keep {
                    self.files.pop_last();
                    self.refused_unnamed += 1;
                }
            }
        }
    }
}

/// A directory that its owner made unreadable is made readable: nothing lives that could mind.
fn open_even_unreadable(parent: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<std::os::fd::OwnedFd> {
    match beneath::open_child_directory(parent, name) {
        Err(Errno::ACCESS) => {
            let mode = rustix::fs::Mode::from_raw_mode(0o700);
            rustix::fs::chmodat(parent, name, mode, rustix::fs::AtFlags::empty())?;
            beneath::open_child_directory(parent, name)
        }
        opened => opened,
    }
}

/// Only regular files with one name on the workspace's own file system are taken.
pub(super) fn reason_to_refuse(stat: &Stat, device: u64) -> Option<&'static str> {
    match beneath::file_type(stat) {
        FileType::RegularFile if stat.st_dev != device => Some("on another file system"),
        FileType::RegularFile if stat.st_nlink != 1 => Some("has more than one hard link"),
        FileType::RegularFile => None,
        FileType::Symlink => Some("a symbolic link"),
        FileType::Fifo => Some("a FIFO"),
        FileType::Socket => Some("a socket"),
        FileType::CharacterDevice | FileType::BlockDevice => Some("a device"),
        _ => Some("not a regular file"),
    }
}
