//! Opening and making things below a directory descriptor, one component at a time, following no link.
//!
//! A workspace may have been written by a hostile script: every component can be a link. `O_NOFOLLOW` on each
//! of them is the same on every kernel and needs no fallback.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use skillbox_model::RelPath;

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Opens a directory below `root`; a link anywhere on the way is `ELOOP` or `ENOTDIR`.
pub(crate) fn open_directory(root: BorrowedFd<'_>, path: &RelPath) -> rustix::io::Result<OwnedFd> {
    let mut current: Option<OwnedFd> = None;
    for part in path.components() {
        let parent = current.as_ref().map_or(root, AsFd::as_fd);
        current = Some(open_child_directory(parent, part)?);
    }
    current.ok_or(Errno::NOENT)
}

/// Opens the directory `name` of `parent` itself, never through a link.
pub(crate) fn open_child_directory(parent: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(parent, name, DIRECTORY, Mode::empty())
}

/// Whether `name` of `parent` is a directory with nothing in it. What cannot be looked at is not.
pub(crate) fn is_empty_directory(parent: BorrowedFd<'_>, name: &[u8]) -> bool {
    let Ok(mut list) = open_child_directory(parent, name).and_then(rustix::fs::Dir::new) else {
        return false;
    };
    list.all(|entry| entry.is_ok_and(|entry| matches!(entry.file_name().to_bytes(), b"." | b"..")))
}

/// Opens a file of `parent` for reading. Never blocks: a FIFO without a writer opens at once, and the caller
/// looks at the type before reading.
pub(crate) fn open_child_file(parent: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

/// What `name` of `parent` is, the link itself where it is one.
pub(crate) fn stat_child(parent: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<Stat> {
    rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
}

/// The type in a stat.
pub(crate) fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Opens the parent of `path` below `root` and gives it with the last component.
pub(crate) fn open_parent<'a>(root: BorrowedFd<'_>, path: &'a RelPath) -> rustix::io::Result<(OwnedFd, &'a [u8])> {
    let parent = match path.parent() {
        Some(parent) => open_directory(root, &parent)?,
        None => rustix::io::fcntl_dupfd_cloexec(root, 0)?,
    };
    Ok((parent, path.file_name()))
}

/// Bytes on disk and entries below a directory, as far as `enough` entries; links count, and are not followed.
pub(crate) fn tree_usage(root: BorrowedFd<'_>, enough: u64) -> (u64, u64) {
    let (mut bytes, mut entries) = (0_u64, 0_u64);
    let Ok(first) = rustix::io::fcntl_dupfd_cloexec(root, 0) else {
        return (0, 0);
    };
    let mut waiting = vec![first];
    while let Some(directory) = waiting.pop() {
        let Ok(list) = rustix::fs::Dir::read_from(&directory) else {
            continue;
        };
        for entry in list.flatten() {
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            let Ok(stat) = stat_child(directory.as_fd(), name) else {
                continue;
            };
            entries += 1;
            bytes = bytes.saturating_add(u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512));
            if entries > enough {
                return (bytes, entries);
            }
            // So many open directories are more than any tool makes by accident; what is below is not counted.
            if file_type(&stat) == FileType::Directory && waiting.len() < 256 {
                waiting.extend(open_child_directory(directory.as_fd(), name));
            }
        }
    }
    (bytes, entries)
}
