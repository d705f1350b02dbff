//! Finds the files that the globs match, in bounded time and memory, without following links.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;
use skillbox_model::{RefusedOutput, RelPath};

use super::{Baseline, Workspace, nofollow};
use crate::job::OutputGlobs;
use crate::layout::{is_agent_skills_link, is_overlay_work_directory};

/// The deepest directory that is searched.
const MAX_DEPTH: usize = 64;
/// The maximum number of visited entries, more than a workspace of the shipped profiles can hold.
const MAX_ENTRIES: u64 = 1_000_000;
/// The number of refusals that are listed by name. Others are only counted.
pub(super) const MAX_NAMED_REFUSALS: usize = 100;

/// The matching files in the order of their names, and the refused ones.
#[derive(Debug, Default)]
pub(super) struct Candidates<'b> {
    pub files: BTreeMap<RelPath, u64>,
    pub refused: Vec<RefusedOutput>,
    pub unnamed_refusals: u64,
    /// The first matching files that the baseline contains as they are.
    pub unchanged: Vec<String>,
    max_candidates: usize,
    visited_entries: u64,
    device: u64,
    baseline: Option<&'b Baseline>,
    workspace: Option<&'b Workspace>,
}

impl<'b> Candidates<'b> {
    /// Searches only directories below which something can match. Memory is bounded: at most `max_files` files are
    /// kept, plus those that are refused by name.
    pub(super) fn find(
        workspace: &'b Workspace,
        globs: &OutputGlobs,
        max_files: usize,
        baseline: &'b Baseline,
    ) -> rustix::io::Result<Self> {
        let mut candidates = Self {
            max_candidates: max_files.saturating_add(MAX_NAMED_REFUSALS),
            device: rustix::fs::fstat(workspace.root())?.st_dev,
            baseline: Some(baseline),
            workspace: Some(workspace),
            ..Self::default()
        };
        for root in globs.roots() {
            let Ok(path) = RelPath::parse(root) else {
                candidates.walk(workspace.root(), None, globs, 0);
                continue;
            };
            match workspace.open_directory(&path) {
                Ok(directory) => candidates.walk(directory.as_fd(), Some(&path), globs, 0),
                Err(Errno::NOENT) => {}
                Err(Errno::NOTDIR | Errno::LOOP) => candidates.refuse(&path, "not a directory, or behind a link"),
                Err(error) => candidates.refuse(&path, &format!("cannot be opened: {error}")),
            }
        }
        Ok(candidates)
    }

    pub(super) fn refuse(&mut self, path: &RelPath, reason: &str) {
        if self.refused.len() < MAX_NAMED_REFUSALS {
            let name = path.to_string();
            self.refused.push(RefusedOutput {
                name,
                reason: reason.to_owned(),
            });
        } else {
            self.unnamed_refusals += 1;
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
            self.visited_entries += 1;
            if self.visited_entries > MAX_ENTRIES {
                self.unnamed_refusals += 1;
                return;
            }
            let Ok(child) =
                RelPath::parse(name).and_then(|name| path.map_or(Ok(name.clone()), |path| path.join(&name)))
            else {
                self.unnamed_refusals += 1;
                continue;
            };
            if let Some(layers) = self.workspace.and_then(|workspace| workspace.skill_layers_at(&child)) {
                self.walk(layers, Some(&child), globs, depth + 1);
                continue;
            }
            match nofollow::stat_child(directory, name) {
                Ok(stat) => self.visit_entry(directory, name, &child, &stat, globs, depth),
                Err(error) if globs.matches(&child) => self.refuse(&child, &format!("cannot be inspected: {error}")),
                Err(_) => {}
            }
        }
    }

    fn visit_entry(
        &mut self,
        directory: BorrowedFd<'_>,
        name: &[u8],
        path: &RelPath,
        stat: &Stat,
        globs: &OutputGlobs,
        depth: usize,
    ) {
        if is_overlay_work_directory(path.as_bytes()) {
            return;
        }
        if nofollow::file_type(stat) == FileType::Directory {
            if stat.st_dev != self.device {
                // A mount, such as a skill or a linked input. Its files are not outputs of the run.
                return;
            }
            if depth >= MAX_DEPTH {
                self.refuse(path, "nested too deeply");
                return;
            }
            match open_or_make_readable(directory, name) {
                Ok(below) => self.walk(below.as_fd(), Some(path), globs, depth + 1),
                Err(error) => self.refuse(path, &format!("cannot be opened: {error}")),
            }
            return;
        }
        let is_layout_link = nofollow::file_type(stat) == FileType::Symlink && is_agent_skills_link(path.as_bytes());
        if is_layout_link || !globs.matches(path) {
            return;
        }
        let skill = self.baseline.and_then(|baseline| baseline.skill_of(path));
        if skill.is_some_and(|skill| skill.has_same(directory, name, path, stat)) {
            return;
        }
        match refusal_reason(stat, self.device) {
            Some(reason) => self.refuse(path, reason),
            // A report is UTF-8 text, so it cannot contain this name unchanged.
            None if path.to_str().is_none() => self.refuse(path, "its name is not valid UTF-8"),
            None if self
                .baseline
                .is_some_and(|baseline| baseline.contains_unchanged(directory, name, path, stat)) =>
            {
                if self.unchanged.len() < MAX_NAMED_REFUSALS {
                    self.unchanged.push(path.to_string());
                    self.unchanged.sort_unstable();
                }
            }
            None => {
                self.files
                    .insert(path.clone(), u64::try_from(stat.st_size).unwrap_or(0));
                if self.files.len() > self.max_candidates {
                    self.files.pop_last();
                    self.unnamed_refusals += 1;
                }
            }
        }
    }
}

/// Opens a directory. If the script made it unreadable, its mode is changed first, which is safe because no process of
/// the run is left.
fn open_or_make_readable(parent: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<std::os::fd::OwnedFd> {
    match nofollow::open_child_directory(parent, name) {
        Err(Errno::ACCESS) => {
            let mode = rustix::fs::Mode::from_raw_mode(0o700);
            rustix::fs::chmodat(parent, name, mode, rustix::fs::AtFlags::empty())?;
            nofollow::open_child_directory(parent, name)
        }
        opened => opened,
    }
}

/// Returns why a file is refused; none for a regular file with a single hard link on the workspace's own file system.
pub(super) fn refusal_reason(stat: &Stat, device: u64) -> Option<&'static str> {
    match nofollow::file_type(stat) {
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
