//! Opening a SKILL.md without risk, and reading no more of it than its frontmatter.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, openat};
use rustix::io::{Errno, pread};
use skillbox_model::Diagnostic;

use crate::contained::{ContainedDir, OpenError};
use crate::frontmatter::{Head, frontmatter_end};
use crate::scan_note;
use crate::skill_md::MAX_SKILL_MD_BYTES;

/// The first read: of 800 real files the largest frontmatter has 2,202 bytes.
const FIRST_READ: usize = 8 * 1024;
/// Reading for an end of the frontmatter stops here; the parser refuses far smaller ones.
const LAST_READ: usize = 1024 * 1024;

/// An open SKILL.md that was found to be a regular file of fitting size.
pub(crate) struct SkillFile {
    file: OwnedFd,
    /// As of the moment it was opened.
    pub(crate) stat: Stat,
}

/// What became of opening a SKILL.md.
pub(crate) enum Opened {
    /// It is a file that can be read.
    File(SkillFile),
    /// It is there, but is not opened or not read; this says why. The stat is that of what was opened, if so.
    Refused(Diagnostic, Option<Stat>),
    /// It is a link, and has to be opened from its own directory.
    Link,
    /// There is no such file.
    Missing,
    /// What should be a directory is none (any more).
    NotADirectory,
    /// The system said no, to the file or to its directory.
    Failed(io::Error),
}

/// Opens the SKILL.md at `relative` below `root`, which is shown as `path`. The last component is not followed.
pub(crate) fn open_skill_md(root: BorrowedFd<'_>, relative: &[u8], path: &Path) -> Opened {
    // A FIFO is opened without waiting for its writer, a terminal does not become ours.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match openat(root, relative, flags, Mode::empty()) {
        Ok(file) => examine(file, path),
        Err(Errno::LOOP) => Opened::Link,
        Err(Errno::NOENT) => Opened::Missing,
        Err(Errno::NOTDIR) => Opened::NotADirectory,
        // A socket, or a device that nothing drives.
        Err(Errno::NXIO | Errno::NODEV) => Opened::Refused(scan_note::not_a_file(path, "a socket or a device"), None),
        Err(error) => Opened::Failed(error.into()),
    }
}

/// Opens a SKILL.md that is a link, provided that it stays inside its skill.
pub(crate) fn open_linked_skill_md(directory: &ContainedDir, name: &OsStr, path: &Path) -> Opened {
    match directory.open_beneath(name.as_bytes(), OFlags::RDONLY) {
        Ok(file) => examine(file, path),
        Err(OpenError::Leaves) => Opened::Refused(scan_note::link_leaves_skill(path), None),
        Err(OpenError::System(error)) => match Errno::from_io_error(&error) {
            Some(Errno::NOENT) => Opened::Refused(scan_note::dangling_link(path), None),
            Some(Errno::LOOP) => Opened::Refused(scan_note::link_loop(path), None),
            Some(Errno::NXIO | Errno::NODEV) => {
                Opened::Refused(scan_note::not_a_file(path, "a socket or a device"), None)
            }
            _ => Opened::Failed(error),
        },
    }
}

fn examine(file: OwnedFd, path: &Path) -> Opened {
    let stat = match fstat(&file) {
        Ok(stat) => stat,
        Err(error) => return Opened::Failed(error.into()),
    };
    let what = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            let size = u64::try_from(stat.st_size).unwrap_or(0);
            if size > MAX_SKILL_MD_BYTES {
                return Opened::Refused(scan_note::too_large(path, size, MAX_SKILL_MD_BYTES), Some(stat));
            }
            return Opened::File(SkillFile { file, stat });
        }
        FileType::Directory => "a directory",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        _ => "a device",
    };
    Opened::Refused(scan_note::not_a_file(path, what), Some(stat))
}

impl SkillFile {
    /// Reads into `buffer` until the frontmatter has ended, in growing steps, and gives it to be parsed.
    ///
    /// The body is left for whoever loads the skill. Only when what was read of it is not UTF-8 is it given too, so
    /// that the parser can say where.
    pub(crate) fn read_head<'b>(&self, buffer: &'b mut Vec<u8>) -> io::Result<&'b [u8]> {
        let size = usize::try_from(self.stat.st_size).unwrap_or(usize::MAX);
        let mut wanted = FIRST_READ;
        let mut filled = 0;
        loop {
            if buffer.len() < wanted {
                buffer.resize(wanted, 0);
            }
            // The size of the moment of opening spares the read that would only tell the end.
            let ended = fill(self.file.as_fd(), &mut buffer[..wanted.min(size)], &mut filled)? || filled >= size;
            match frontmatter_end(&buffer[..filled]) {
                Head::NeedMore if !ended && wanted < LAST_READ => wanted *= 4,
                Head::Complete { end } if !is_broken_text(&buffer[end..filled], ended) => return Ok(&buffer[..end]),
                _ => return Ok(&buffer[..filled - cut_character(&buffer[..filled], ended)]),
            }
        }
    }
}

/// Whether bytes are not UTF-8, apart from a last character that was cut off where reading stopped.
fn is_broken_text(bytes: &[u8], ended: bool) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| ended || error.error_len().is_some())
}

/// How many bytes at the end belong to a character that was cut off where reading stopped.
fn cut_character(bytes: &[u8], ended: bool) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if !ended && error.error_len().is_none() => bytes.len() - error.valid_up_to(),
        _ => 0,
    }
}

/// Reads at `filled` until the buffer is full or the file ends, which is what it tells.
fn fill(file: BorrowedFd<'_>, buffer: &mut [u8], filled: &mut usize) -> io::Result<bool> {
    while *filled < buffer.len() {
        match pread(file, &mut buffer[*filled..], *filled as u64) {
            Ok(0) => return Ok(true),
            Ok(read) => *filled += read,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}
