//! The skill as it was before a run that may change its directory: tells which of the files there are outputs.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Stat};
use skillbox_model::{RelPath, SkillName};

use super::nofollow;
use crate::layout;

const BUFFER_BYTES: usize = 64 << 10;

/// The skill as it was before the run.
#[derive(Debug)]
pub struct OriginalSkill {
    /// Its directory below the workspace, with a slash at the end.
    prefix: String,
    /// The directory of its frozen copy.
    root: OwnedFd,
}

impl OriginalSkill {
    /// The skill of this name, whose frozen copy is in the directory `root`.
    pub fn new(name: &SkillName, root: BorrowedFd<'_>) -> io::Result<Self> {
        Ok(Self {
            prefix: format!("{}/", layout::skill_directory(name)),
            root: root.try_clone_to_owned()?,
        })
    }

    /// Whether a path of the workspace is in the directory of the skill.
    pub(super) fn contains(&self, path: &RelPath) -> bool {
        path.as_bytes().starts_with(self.prefix.as_bytes())
    }

    /// Whether an entry of the workspace is the same in the skill, or marks one that the run removed. A file whose mode
    /// or time changed is the same: only its content can be an output.
    pub(super) fn has_same(&self, parent: BorrowedFd<'_>, name: &[u8], path: &RelPath, stat: &Stat) -> bool {
        let kind = nofollow::file_type(stat);
        if kind == FileType::CharacterDevice && stat.st_rdev == 0 {
            // A whiteout, by which an overlay hides a removed entry.
            return true;
        }
        let Ok(below) = RelPath::parse(&path.as_bytes()[self.prefix.len()..]) else {
            return false;
        };
        let Ok((original_parent, original_name)) = nofollow::open_parent(self.root.as_fd(), &below) else {
            return false;
        };
        let original_parent = original_parent.as_fd();
        let Ok(original) = nofollow::stat_child(original_parent, original_name) else {
            return false;
        };
        if nofollow::file_type(&original) != kind {
            return false;
        }
        match kind {
            FileType::Symlink => has_same_target((parent, name), (original_parent, original_name)),
            FileType::RegularFile => {
                original.st_size == stat.st_size
                    && stat.st_nlink == 1
                    && has_same_content((parent, name), (original_parent, original_name)).unwrap_or(false)
            }
            _ => false,
        }
    }
}

fn has_same_target(one: (BorrowedFd<'_>, &[u8]), other: (BorrowedFd<'_>, &[u8])) -> bool {
    let target = |(parent, name): (BorrowedFd<'_>, &[u8])| rustix::fs::readlinkat(parent, name, Vec::new());
    matches!((target(one), target(other)), (Ok(one), Ok(other)) if one == other)
}

fn has_same_content(one: (BorrowedFd<'_>, &[u8]), other: (BorrowedFd<'_>, &[u8])) -> io::Result<bool> {
    let open = |(parent, name)| nofollow::open_child_file(parent, name).map(File::from);
    let (mut one, mut other) = (open(one)?, open(other)?);
    let (mut buffer, mut other_buffer) = (vec![0; BUFFER_BYTES], vec![0; BUFFER_BYTES]);
    loop {
        let count = match one.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if count == 0 {
            return Ok(other.read(&mut other_buffer[..1])? == 0);
        }
        match other.read_exact(&mut other_buffer[..count]) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            read => read?,
        }
        if buffer[..count] != other_buffer[..count] {
            return Ok(false);
        }
    }
}
