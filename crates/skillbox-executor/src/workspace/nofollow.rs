//! Opens, inspects and walks entries below a directory descriptor, one component at a time, without following links.
//!
//! The script that wrote the workspace may be hostile, so every component can be a symbolic link. `O_NOFOLLOW` on each
//! component works on every kernel and needs no fallback.

use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, RawDir, Stat};
use rustix::io::Errno;
use skillbox_model::RelPath;

const OPEN_DIRECTORY_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// The size of the buffer for directory entries.
const LISTING_BUFFER_BYTES: usize = 8 << 10;

/// Opens a directory below `root`. A symbolic link on the way gives `ELOOP` or `ENOTDIR`.
pub(crate) fn open_directory(root: BorrowedFd<'_>, path: &RelPath) -> rustix::io::Result<OwnedFd> {
    let mut current: Option<OwnedFd> = None;
    for part in path.components() {
        let parent = current.as_ref().map_or(root, AsFd::as_fd);
        current = Some(open_child_directory(parent, part)?);
    }
    current.ok_or(Errno::NOENT)
}

/// Opens the directory `name` in `parent`, never through a link.
pub(crate) fn open_child_directory(parent: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(parent, name, OPEN_DIRECTORY_FLAGS, Mode::empty())
}

/// Whether `name` in `parent` is an empty directory. False if it cannot be opened or listed.
pub(crate) fn is_empty_directory(parent: BorrowedFd<'_>, name: &[u8]) -> bool {
    let Ok(directory) = open_child_directory(parent, name) else {
        return false;
    };
    let mut buffer = [MaybeUninit::uninit(); LISTING_BUFFER_BYTES];
    let mut list = RawDir::new(directory, &mut buffer);
    while let Some(entry) = list.next() {
        if !entry.is_ok_and(|entry| matches!(entry.file_name().to_bytes(), b"." | b"..")) {
            return false;
        }
    }
    true
}

/// The names in a directory.
pub(crate) fn list_names(directory: BorrowedFd<'_>) -> rustix::io::Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            names.push(name.to_vec());
        }
    }
    Ok(names)
}

/// The greatest name in a directory that satisfies `is_wanted`; none if the directory cannot be listed.
pub(crate) fn greatest_name(directory: BorrowedFd<'_>, is_wanted: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
    let mut buffer = [MaybeUninit::uninit(); LISTING_BUFFER_BYTES];
    let mut list = RawDir::new(directory, &mut buffer);
    let mut greatest: Option<Vec<u8>> = None;
    while let Some(Ok(entry)) = list.next() {
        let name = entry.file_name().to_bytes();
        if is_wanted(name) && greatest.as_deref().is_none_or(|greatest| greatest < name) {
            greatest = Some(name.to_vec());
        }
    }
    greatest
}

/// Opens a file in `parent` for reading. It never blocks, not even on a FIFO without a writer; the caller checks the
/// type before reading.
pub(crate) fn open_child_file(parent: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

/// The metadata of `name` in `parent`. A symbolic link is not followed.
pub(crate) fn stat_child(parent: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<Stat> {
    rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
}

/// The file type in a `stat` result.
pub(crate) fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Opens the parent of `path` below `root`. Returns it with the last component.
pub(crate) fn open_parent<'a>(root: BorrowedFd<'_>, path: &'a RelPath) -> rustix::io::Result<(OwnedFd, &'a [u8])> {
    let parent = match path.parent() {
        Some(parent) => open_directory(root, &parent)?,
        None => rustix::io::fcntl_dupfd_cloexec(root, 0)?,
    };
    Ok((parent, path.file_name()))
}

/// How a walk through a tree ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WalkEnd {
    /// Every entry was visited.
    Complete,
    /// The visitor stopped the walk.
    Stopped,
    /// A directory could not be opened, or was nested too deeply.
    Incomplete,
}

/// The deepest directory that a walk enters. Each level holds a descriptor while the walk is below it.
const MAX_DEPTH: usize = 512;

/// How a walk treats directories that their owner cannot read or search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnreadableDirs {
    /// The walk continues without them, and ends as [`WalkEnd::Incomplete`].
    Report,
    /// The walk changes their modes. Only for workspaces.
    MakeReadable,
}

/// Visits every entry below a directory. Links are not followed. Entries that disappear during the walk are skipped.
pub(crate) fn walk(
    root: BorrowedFd<'_>,
    unreadable: UnreadableDirs,
    mut visit: impl FnMut(BorrowedFd<'_>, &[u8], FileType) -> ControlFlow<()>,
) -> WalkEnd {
    let mut buffer = [MaybeUninit::uninit(); LISTING_BUFFER_BYTES];
    let mut end = WalkEnd::Complete;
    // Each run of a session walks its workspace twice. The walk therefore needs only one open and two reads per
    // directory.
    let mut pending: Vec<(Option<Rc<OwnedFd>>, Vec<u8>, usize)> = vec![(None, b".".to_vec(), 0)];
    while let Some((parent, name, depth)) = pending.pop() {
        let above = parent.as_ref().map_or(root, |parent| parent.as_fd());
        let opened = match (open_child_directory(above, &name), unreadable) {
            (Err(Errno::ACCESS), UnreadableDirs::MakeReadable) => make_readable_and_open(above, &name),
            (Ok(directory), UnreadableDirs::MakeReadable) if is_unsearchable(directory.as_fd()) => {
                make_readable_and_open(above, &name)
            }
            (opened, _) => opened,
        };
        let directory = match opened {
            Ok(directory) if depth <= MAX_DEPTH => Rc::new(directory),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
            _ => {
                end = WalkEnd::Incomplete;
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
                // Not every file system reports the type in the listing (readdir(3)).
                FileType::Unknown => {
                    stat_child(directory.as_fd(), name).map_or(FileType::Unknown, |stat| file_type(&stat))
                }
                reported => reported,
            };
            if visit(directory.as_fd(), name, kind).is_break() {
                return WalkEnd::Stopped;
            }
            if kind == FileType::Directory {
                pending.push((Some(Rc::clone(&directory)), name.to_vec(), depth + 1));
            }
        }
    }
    end
}

/// Makes a directory readable and searchable for its owner, and opens it. The mode is changed through a
/// descriptor, so the directory cannot be replaced in between.
fn make_readable_and_open(parent: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    let path_fd = match name {
        // Not even `.` can be looked up in a directory without search permission.
        b"." => rustix::io::fcntl_dupfd_cloexec(parent, 0)?,
        _ => rustix::fs::openat(parent, name, OPEN_DIRECTORY_FLAGS | OFlags::PATH, Mode::empty())?,
    };
    let mode = Mode::from_raw_mode(rustix::fs::fstat(&path_fd)?.st_mode) | Mode::RUSR | Mode::XUSR;
    rustix::fs::chmod(format!("/proc/self/fd/{}", path_fd.as_raw_fd()), mode)?;
    open_child_directory(path_fd.as_fd(), b".")
}

/// Whether a directory can be listed but not searched.
fn is_unsearchable(directory: BorrowedFd<'_>) -> bool {
    rustix::fs::accessat(directory, ".", Access::EXEC_OK, AtFlags::EACCESS) == Err(Errno::ACCESS)
}

/// The disk usage in bytes and the number of entries below a directory. Counting stops after `max_entries`. A tree that
/// cannot be walked completely counts as infinitely large, because it would otherwise escape its quota.
pub(crate) fn tree_usage(root: BorrowedFd<'_>, max_entries: u64) -> (u64, u64) {
    let (mut bytes, mut entries) = (0_u64, 0_u64);
    let walked = walk(root, UnreadableDirs::MakeReadable, |directory, name, _| {
        if let Ok(stat) = stat_child(directory, name) {
            entries += 1;
            bytes = bytes.saturating_add(u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512));
        }
        if entries > max_entries {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    match walked {
        WalkEnd::Incomplete => (u64::MAX, u64::MAX),
        WalkEnd::Complete | WalkEnd::Stopped => (bytes, entries),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn hundreds_of_sibling_directories_are_counted() {
        let root_directory = tempfile::tempdir().unwrap();
        for number in 0..400 {
            let directory = root_directory.path().join(number.to_string());
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join("file"), vec![1; 8 << 10]).unwrap();
        }
        let (bytes, entries) = tree_usage(File::open(root_directory.path()).unwrap().as_fd(), u64::MAX);
        assert_eq!(entries, 800);
        assert!(bytes >= 400 * (8 << 10), "{bytes}");
    }

    #[test]
    fn a_tree_that_cannot_be_counted_exceeds_every_quota() {
        let root_directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(root_directory.path().join(vec!["d"; MAX_DEPTH + 2].join("/"))).unwrap();
        let root = File::open(root_directory.path()).unwrap();
        assert_eq!(tree_usage(root.as_fd(), u64::MAX), (u64::MAX, u64::MAX));
    }

    #[test]
    fn unreadable_directories_are_counted() {
        let root_directory = tempfile::tempdir().unwrap();
        let hidden = root_directory.path().join("hidden");
        fs::create_dir(&hidden).unwrap();
        fs::write(hidden.join("file"), "x").unwrap();
        for mode in [0o300, 0o400, 0o000] {
            fs::set_permissions(&hidden, PermissionsExt::from_mode(mode)).unwrap();
            let root = File::open(root_directory.path()).unwrap();
            assert_eq!(tree_usage(root.as_fd(), u64::MAX).1, 2, "{mode:o}");
        }
        fs::set_permissions(&hidden, PermissionsExt::from_mode(0o700)).unwrap();
        for (parent, name) in [(root_directory.path(), &b"hidden"[..]), (&hidden, b".")] {
            let parent = File::open(parent).unwrap();
            fs::set_permissions(&hidden, PermissionsExt::from_mode(0o000)).unwrap();
            assert!(make_readable_and_open(parent.as_fd(), name).is_ok());
            let mode = fs::metadata(&hidden).unwrap().permissions().mode();
            assert_eq!(mode & 0o7777, 0o500);
        }
    }
}
