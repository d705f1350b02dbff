//! Opens a SKILL.md safely and reads only its frontmatter.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, openat};
use rustix::io::{Errno, pread};
use skillbox_model::Diagnostic;

use crate::diagnostics::scan_diagnostics;
use crate::fs::{ContainedDir, OpenError};
use crate::parse::{FrontmatterEnd, MAX_SKILL_MD_BYTES, find_frontmatter_end};

/// The size of the first read. The largest frontmatter of 800 public skills has 2,202 bytes.
const FIRST_READ_BYTES: usize = 8 * 1024;
/// The maximum number of bytes to search for the end of the frontmatter. The parser rejects larger frontmatter.
const MAX_READ_BYTES: usize = 1024 * 1024;

/// An open SKILL.md: a regular file within the size limit.
pub(super) struct SkillMdFile {
    file: OwnedFd,
    /// The `stat` of the file when it was opened.
    pub(super) stat: Stat,
}

/// The result of opening a SKILL.md.
pub(super) enum OpenResult {
    /// The file can be read.
    File(SkillMdFile),
    /// The file must not be read, for the reason in the diagnostic. The `stat` is present if the file was opened.
    Rejected(Diagnostic, Option<Stat>),
    /// The file is a link. [`open_linked_skill_md`] must open it.
    Link,
    /// There is no such file.
    Missing,
    /// A component of the path is not a directory, or no longer a directory.
    NotADirectory,
    /// The system call failed. The cause may be the file or its directory.
    Failed(io::Error),
}

/// Opens the SKILL.md at `relative` below `root`, unless it is a link. Diagnostics show it as `path`.
pub(super) fn open_skill_md(root: BorrowedFd<'_>, relative: &[u8], path: &Path) -> OpenResult {
    // Opening a FIFO does not wait for a writer, and a terminal does not become the controlling one.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match openat(root, relative, flags, Mode::empty()) {
        Ok(file) => check_file(file, path),
        Err(Errno::LOOP) => OpenResult::Link,
        Err(Errno::NOENT) => OpenResult::Missing,
        Err(Errno::NOTDIR) => OpenResult::NotADirectory,
        // A socket, or a device without a driver.
        Err(Errno::NXIO | Errno::NODEV) => {
            OpenResult::Rejected(scan_diagnostics::not_a_file(path, "a socket or a device"), None)
        }
        Err(error) => OpenResult::Failed(error.into()),
    }
}

/// Opens a SKILL.md that is a link, if its target is inside the skill.
pub(super) fn open_linked_skill_md(directory: &ContainedDir, name: &OsStr, path: &Path) -> OpenResult {
    match directory.open_beneath(name.as_bytes(), OFlags::RDONLY) {
        Ok(file) => check_file(file, path),
        Err(OpenError::Outside) => OpenResult::Rejected(scan_diagnostics::link_leaves_skill(path), None),
        Err(OpenError::System(error)) => match Errno::from_io_error(&error) {
            Some(Errno::NOENT) => OpenResult::Rejected(scan_diagnostics::dangling_link(path), None),
            Some(Errno::LOOP) => OpenResult::Rejected(scan_diagnostics::link_loop(path), None),
            Some(Errno::NXIO | Errno::NODEV) => {
                OpenResult::Rejected(scan_diagnostics::not_a_file(path, "a socket or a device"), None)
            }
            _ => OpenResult::Failed(error),
        },
    }
}

fn check_file(file: OwnedFd, path: &Path) -> OpenResult {
    let stat = match fstat(&file) {
        Ok(stat) => stat,
        Err(error) => return OpenResult::Failed(error.into()),
    };
    let file_type = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            let size = u64::try_from(stat.st_size).unwrap_or(0);
            if size > MAX_SKILL_MD_BYTES {
                return OpenResult::Rejected(scan_diagnostics::too_large(path, size, MAX_SKILL_MD_BYTES), Some(stat));
            }
            return OpenResult::File(SkillMdFile { file, stat });
        }
        FileType::Directory => "a directory",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        _ => "a device",
    };
    OpenResult::Rejected(scan_diagnostics::not_a_file(path, file_type), Some(stat))
}

impl SkillMdFile {
    /// Reads into `buffer`, in growing steps, until the frontmatter ends, and returns the bytes to parse.
    ///
    /// These bytes include the body only if the part of it that was read is not UTF-8, so that the parser reports the
    /// position.
    pub(super) fn read_frontmatter<'b>(&self, buffer: &'b mut Vec<u8>) -> io::Result<&'b [u8]> {
        let size = usize::try_from(self.stat.st_size).unwrap_or(usize::MAX);
        let mut wanted = FIRST_READ_BYTES;
        let mut filled = 0;
        loop {
            if buffer.len() < wanted {
                buffer.resize(wanted, 0);
            }
            // Because the size is known, no extra read is needed to detect the end of the file.
            let is_at_end =
                fill_buffer(self.file.as_fd(), &mut buffer[..wanted.min(size)], &mut filled)? || filled >= size;
            match find_frontmatter_end(&buffer[..filled]) {
                FrontmatterEnd::NeedMore if !is_at_end && wanted < MAX_READ_BYTES => wanted *= 4,
                FrontmatterEnd::Complete { body_offset }
                    if !has_invalid_utf8(&buffer[body_offset..filled], is_at_end) =>
                {
                    return Ok(&buffer[..body_offset]);
                }
                _ => return Ok(&buffer[..filled - incomplete_char_bytes(&buffer[..filled], is_at_end)]),
            }
        }
    }

    /// Reads the first `length` bytes of the file into `buffer`, without an incomplete last character.
    pub(super) fn read_start<'b>(&self, length: usize, buffer: &'b mut Vec<u8>) -> io::Result<&'b [u8]> {
        let size = usize::try_from(self.stat.st_size).unwrap_or(usize::MAX);
        let wanted = length.min(size);
        if buffer.len() < wanted {
            buffer.resize(wanted, 0);
        }
        let mut filled = 0;
        let is_at_end = fill_buffer(self.file.as_fd(), &mut buffer[..wanted], &mut filled)? || filled >= size;
        Ok(&buffer[..filled - incomplete_char_bytes(&buffer[..filled], is_at_end)])
    }
}

/// Whether bytes are not UTF-8, ignoring an incomplete last character before the end of the file.
fn has_invalid_utf8(bytes: &[u8], is_at_end: bool) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| is_at_end || error.error_len().is_some())
}

/// The length of an incomplete last character before the end of the file.
fn incomplete_char_bytes(bytes: &[u8], is_at_end: bool) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if !is_at_end && error.error_len().is_none() => bytes.len() - error.valid_up_to(),
        _ => 0,
    }
}

/// Reads at `filled` until the buffer is full or the file ends; returns whether the file ended.
fn fill_buffer(file: BorrowedFd<'_>, buffer: &mut [u8], filled: &mut usize) -> io::Result<bool> {
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
