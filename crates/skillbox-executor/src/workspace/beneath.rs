//! Opening and making things below a directory descriptor, one component at a time, following no link.
//!
//! A workspace may have been written by a hostile script: every component can be a link. `O_NOFOLLOW` on each
//! of them is the same on every kernel and needs no fallback.

use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, RawDir, Stat};
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

/// How a walk through a tree ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Walk {
    /// Everything was looked at.
    Whole,
    /// Whoever looked had seen enough.
    Stopped,
    /// There is a directory that cannot be looked into, or that lies too deep.
    Blocked,
}

/// Deeper than any tool makes by accident. Each level holds a descriptor while what is below it is looked at.
const DEEPEST: usize = 512;

/// What a walk does about directories that their owner has closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    /// It leaves them as they are.
    Stay,
    /// It opens them for their owner, where that is us: they are of a workspace.
    AreOpened,
}

/// Shows every entry below a directory, links as what they are. What vanishes meanwhile is left out.
pub(crate) fn walk(
    root: BorrowedFd<'_>,
    closed: Closed,
    mut look: impl FnMut(BorrowedFd<'_>, &[u8], FileType) -> ControlFlow<()>,
) -> Walk {
    let mut buffer = [MaybeUninit::uninit(); LISTING];
    let mut end = Walk::Whole;
    // Every look at a session begins and ends with this: one open and two reads for a directory.
    let mut waiting: Vec<(Option<Rc<OwnedFd>>, Vec<u8>, usize)> = vec![(None, b".".to_vec(), 0)];
    while let Some((parent, name, depth)) = waiting.pop() {
        let above = parent.as_ref().map_or(root, |parent| parent.as_fd());
        let opened = match (open_child_directory(above, &name), closed) {
            (Err(Errno::ACCESS), Closed::AreOpened) => open_closed_directory(above, &name),
            (Ok(directory), Closed::AreOpened) if is_unsearchable(directory.as_fd()) => {
                open_closed_directory(above, &name)
            }
            (opened, _) => opened,
        };
        let directory = match opened {
            Ok(directory) if depth <= DEEPEST => Rc::new(directory),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
            _ => {
                end = Walk::Blocked;
                continue;
            }
        };
        drop(parent);
        let mut list = RawDir::new(&*directory, &mut buffer);
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
            if look(directory.as_fd(), name, kind).is_break() {
                return Walk::Stopped;
            }
            if kind == FileType::Directory {
                waiting.push((Some(Rc::clone(&directory)), name.to_vec(), depth + 1));
            }
        }
    }
    end
}

/// Lets the owner of a directory list and search it, and opens it. The directory is held before its mode is changed: no
/// other can take its place.
fn open_closed_directory(parent: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    let held = match name {
        // Nothing can be looked up in a directory that cannot be searched, not even itself.
        b"." => rustix::io::fcntl_dupfd_cloexec(parent, 0)?,
        _ => rustix::fs::openat(parent, name, DIRECTORY | OFlags::PATH, Mode::empty())?,
    };
    let mode = Mode::from_raw_mode(rustix::fs::fstat(&held)?.st_mode) | Mode::RUSR | Mode::XUSR;
    rustix::fs::chmod(format!("/proc/self/fd/{}", held.as_raw_fd()), mode)?;
    open_child_directory(held.as_fd(), b".")
}

/// Whether what is in a directory cannot be looked at, though it can be listed.
fn is_unsearchable(directory: BorrowedFd<'_>) -> bool {
    rustix::fs::accessat(directory, ".", Access::EXEC_OK, AtFlags::EACCESS) == Err(Errno::ACCESS)
}

/// Bytes on disk and entries below a directory, as far as `enough` entries. A tree that cannot be looked through holds
/// more than anybody may have: what cannot be counted would not be bounded.
pub(crate) fn tree_usage(root: BorrowedFd<'_>, enough: u64) -> (u64, u64) {
    let (mut bytes, mut entries) = (0_u64, 0_u64);
    let walked = walk(root, Closed::AreOpened, |directory, name, _| {
        if let Ok(stat) = stat_child(directory, name) {
            entries += 1;
            bytes = bytes.saturating_add(u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512));
        }
        if entries > enough {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    match walked {
        Walk::Blocked => (u64::MAX, u64::MAX),
        Walk::Whole | Walk::Stopped => (bytes, entries),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn hundreds_of_siblings_hide_nothing() {
        let place = tempfile::tempdir().unwrap();
        for number in 0..400 {
            let directory = place.path().join(number.to_string());
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join("file"), vec![1; 8 << 10]).unwrap();
        }
        let (bytes, entries) = tree_usage(File::open(place.path()).unwrap().as_fd(), u64::MAX);
        assert_eq!(entries, 800);
        assert!(bytes >= 400 * (8 << 10), "{bytes}");
    }

    #[test]
    fn what_cannot_be_counted_is_too_much() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join(vec!["d"; DEEPEST + 2].join("/"))).unwrap();
        let root = File::open(place.path()).unwrap();
        assert_eq!(tree_usage(root.as_fd(), u64::MAX), (u64::MAX, u64::MAX));
    }

    #[test]
    fn a_closed_directory_hides_nothing() {
        let place = tempfile::tempdir().unwrap();
        let hidden = place.path().join("hidden");
        fs::create_dir(&hidden).unwrap();
        fs::write(hidden.join("file"), "x").unwrap();
        for mode in [0o300, 0o400, 0o000] {
            fs::set_permissions(&hidden, PermissionsExt::from_mode(mode)).unwrap();
            let root = File::open(place.path()).unwrap();
            assert_eq!(tree_usage(root.as_fd(), u64::MAX).1, 2, "{mode:o}");
        }
        fs::set_permissions(&hidden, PermissionsExt::from_mode(0o700)).unwrap();
        for (parent, name) in [(place.path(), &b"hidden"[..]), (&hidden, b".")] {
            let parent = File::open(parent).unwrap();
            fs::set_permissions(&hidden, PermissionsExt::from_mode(0o000)).unwrap();
            assert!(open_closed_directory(parent.as_fd(), name).is_ok());
            let mode = fs::metadata(&hidden).unwrap().permissions().mode();
            assert_eq!(mode & 0o7777, 0o500);
        }
    }
}
