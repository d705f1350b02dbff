//! Opening and making things below a directory descriptor, one component at a time, following no link.
//!
//! A workspace may have been written by a hostile script: every component can be a link. `O_NOFOLLOW` on each
//! of them is the same on every kernel and needs no fallback.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, Stat};
use rustix::io::Errno;
use skillbox_model::RelPath;

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Bytes of names that are read at once.
const LISTING: usize = 8 << 10;

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
    let Ok(directory) = open_child_directory(parent, name) else {
        return false;
    };
    let mut buffer = [MaybeUninit::uninit(); LISTING];
    let mut list = RawDir::new(directory, &mut buffer);
    while let Some(entry) = list.next() {
        if !entry.is_ok_and(|entry| matches!(entry.file_name().to_bytes(), b"." | b"..")) {
            return false;
        }
    }
    true
}

/// The greatest of the names in a directory that are wanted; none where it cannot be listed.
pub(crate) fn greatest_name(directory: BorrowedFd<'_>, is_wanted: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
    let mut buffer = [MaybeUninit::uninit(); LISTING];
    let mut list = RawDir::new(directory, &mut buffer);
    let mut greatest: Option<Vec<u8>> = None;
    while let Some(Ok(entry)) = list.next() {
        let name = entry.file_name().to_bytes();
        if is_wanted(name) && greatest.as_deref().is_none_or(|known| known < name) {
            greatest = Some(name.to_vec());
        }
    }
    greatest
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
    let mut buffer = [MaybeUninit::uninit(); LISTING];
    let mut waiting = Vec::new();
    // Every look at a session begins and ends with this: one open, one stat and two reads for a directory.
    let mut next = open_child_directory(root, b".").ok();
    while let Some(directory) = next {
        let mut list = RawDir::new(&directory, &mut buffer);
        while let Some(Ok(entry)) = list.next() {
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                // Not every file system says it here.
                FileType::Unknown => {
                    stat_child(directory.as_fd(), name).map_or(FileType::Unknown, |stat| file_type(&stat))
                }
                known => known,
            };
            // So many open directories are more than any tool makes by accident; what is below is not counted.
            let is_entered = kind == FileType::Directory && waiting.len() < 256;
            let entered = is_entered.then(|| open_child_directory(directory.as_fd(), name).ok());
            let stat = match entered.flatten() {
                Some(entered) => {
                    let stat = rustix::fs::fstat(&entered);
                    waiting.push(entered);
                    stat
                }
                None => stat_child(directory.as_fd(), name),
            };
            let Ok(stat) = stat else { continue };
            entries += 1;
            bytes = bytes.saturating_add(u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512));
            if entries > enough {
                return (bytes, entries);
            }
        }
        next = waiting.pop();
    }
    (bytes, entries)
}
