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
