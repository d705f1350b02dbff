//! Walks a file tree that a hostile script may have created: one open directory at a time, without following links.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use crate::message::{Entry, EntryKind};

/// The maximum depth of a directory that is read: a path of `PATH_MAX` bytes has at most this many components.
const MAX_DEPTH: usize = 2048;

/// The tree to walk.
#[derive(Clone, Copy)]
pub struct WalkOptions<'a> {
    /// The root directory of the tree.
    pub root: BorrowedFd<'a>,
    /// Top-level names that are neither reported nor counted.
    pub excluded_names: &'a [&'a [u8]],
    /// Entries that are neither reported nor counted, by their path and metadata. Nothing below such a directory is
    /// reported.
    pub is_excluded: &'a dyn Fn(&[u8], &Stat) -> bool,
    /// The maximum number of entries to report.
    pub max_entries: u64,
}

/// For [`WalkOptions::is_excluded`]: every entry is reported.
pub fn exclude_nothing(_path: &[u8], _stat: &Stat) -> bool {
    false
}

/// Calls `report` for every entry below a directory, parents first. Returns the number of skipped entries: those that
/// cannot be read, or exceed a limit.
pub fn walk_tree<E: From<Errno>>(
    options: WalkOptions<'_>,
    report: &mut dyn FnMut(&Entry) -> Result<(), E>,
) -> Result<u64, E> {
    let mut skipped = 0;
    let mut reported: u64 = 0;
    let mut seen: HashMap<(u64, u64), u32> = HashMap::new();
    // Paths instead of descriptors, so that a deep or wide tree does not exhaust the open files.
    let mut pending: Vec<Vec<u8>> = vec![Vec::new()];
    while let Some(directory) = pending.pop() {
        let depth = if directory.is_empty() {
            0
        } else {
            directory.split(|byte| *byte == b'/').count()
        };
        let Ok(open) = open_directory(options.root, &directory) else {
            skipped += 1;
            continue;
        };
        let mut names: Vec<Vec<u8>> = Vec::new();
        for item in Dir::read_from(&open)? {
            let name = item?.file_name().to_bytes().to_vec();
            let is_excluded = depth == 0 && options.excluded_names.contains(&name.as_slice());
            if name != b"." && name != b".." && !is_excluded {
                names.push(name);
            }
        }
        names.sort_unstable();
        let mut below = Vec::new();
        for name in names {
            let path = if directory.is_empty() {
                name.clone()
            } else {
                [directory.as_slice(), b"/", &name].concat()
            };
            if reported >= options.max_entries || path.len() > 4095 {
                skipped += 1;
                continue;
            }
            let Ok(stat) = rustix::fs::statat(&open, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW) else {
                skipped += 1;
                continue;
            };
            if (options.is_excluded)(&path, &stat) {
                continue;
            }
            let index = u32::try_from(reported).map_err(|_| Errno::OVERFLOW)?;
            let mode = stat.st_mode & 0o777;
            let kind = match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => {
                    if depth < MAX_DEPTH {
                        below.push(path.clone());
                    } else {
                        skipped += 1;
                    }
                    EntryKind::Directory { mode }
                }
                FileType::RegularFile => match index_of_first_name(&mut seen, &stat, index) {
                    Some(index) => EntryKind::HardLink { index },
                    None => EntryKind::File {
                        mode,
                        size: u64::try_from(stat.st_size).map_err(|_| Errno::OVERFLOW)?,
                    },
                },
                FileType::Symlink => match rustix::fs::readlinkat(&open, name.as_slice(), Vec::new()) {
                    Ok(target) => EntryKind::Symlink {
                        target: target.into_bytes(),
                    },
                    Err(_) => {
                        skipped += 1;
                        continue;
                    }
                },
                FileType::Fifo => EntryKind::Fifo,
                FileType::Socket => EntryKind::Socket,
                _ => EntryKind::Device,
            };
            report(&Entry { path, kind })?;
            reported += 1;
        }
        pending.extend(below.into_iter().rev());
    }
    Ok(skipped)
}

/// The index under which a file with several names was reported first; none if this is its first name.
fn index_of_first_name(seen: &mut HashMap<(u64, u64), u32>, stat: &Stat, index: u32) -> Option<u32> {
    if stat.st_nlink < 2 {
        return None;
    }
    match seen.entry((stat.st_dev, stat.st_ino)) {
        std::collections::hash_map::Entry::Occupied(first) => Some(*first.get()),
        std::collections::hash_map::Entry::Vacant(vacant) => {
            vacant.insert(index);
            None
        }
    }
}

const DIRECTORY_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Opens a directory below `root` without following links; the empty path is `root` itself. An unreadable directory is
/// made readable, which is safe because no process of the run is alive.
pub fn open_directory(root: BorrowedFd<'_>, path: &[u8]) -> rustix::io::Result<OwnedFd> {
    // One system call, if the kernel has openat2(2). After a failure the path is opened component by component.
    let whole = if path.is_empty() { b"." } else { path };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    if let Ok(opened) = rustix::fs::openat2(root, whole, DIRECTORY_FLAGS, Mode::empty(), resolve) {
        return Ok(opened);
    }
    let mut current = rustix::fs::openat(root, ".", DIRECTORY_FLAGS, Mode::empty())?;
    for part in path.split(|byte| *byte == b'/').filter(|part| !part.is_empty()) {
        if part == b".." {
            return Err(Errno::ACCESS);
        }
        current = match rustix::fs::openat(&current, part, DIRECTORY_FLAGS, Mode::empty()) {
            Err(Errno::ACCESS) => {
                rustix::fs::chmodat(&current, part, Mode::from_raw_mode(0o700), AtFlags::empty())?;
                rustix::fs::openat(&current, part, DIRECTORY_FLAGS, Mode::empty())?
            }
            opened => opened?,
        };
    }
    Ok(current)
}

/// Opens a regular file below `root` for reading, without following links and without blocking on a FIFO.
pub fn open_file(root: BorrowedFd<'_>, path: &[u8]) -> rustix::io::Result<OwnedFd> {
    let (parent, name) = match path.iter().rposition(|byte| *byte == b'/') {
        Some(cut) => (&path[..cut], &path[cut + 1..]),
        None => (&path[..0], path),
    };
    if name.is_empty() || name == b".." {
        return Err(Errno::ACCESS);
    }
    let parent = open_directory(root, parent)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = match rustix::fs::openat(&parent, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => {
            rustix::fs::chmodat(&parent, name, Mode::from_raw_mode(0o600), AtFlags::empty())?;
            rustix::fs::openat(&parent, name, flags, Mode::empty())?
        }
        opened => opened?,
    };
    let stat = rustix::fs::fstat(opened.as_fd())?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Errno::INVAL);
    }
    Ok(opened)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn listed(root: &File, excluded_names: &[&[u8]], max_entries: u64) -> (Vec<(String, EntryKind)>, u64) {
        let mut found = Vec::new();
        let options = WalkOptions {
            root: root.as_fd(),
            excluded_names,
            is_excluded: &exclude_nothing,
            max_entries,
        };
        let skipped = walk_tree::<Errno>(options, &mut |entry| {
            found.push((String::from_utf8(entry.path.clone()).unwrap(), entry.kind.clone()));
            Ok(())
        });
        (found, skipped.unwrap())
    }

    #[test]
    fn every_entry_is_reported_with_its_kind() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path();
        fs::create_dir_all(top.join("a/locked")).unwrap();
        fs::write(top.join("a/file"), "four").unwrap();
        fs::write(top.join("a/locked/inner"), "").unwrap();
        fs::hard_link(top.join("a/file"), top.join("b")).unwrap();
        symlink("/etc", top.join("c")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, top.join("d"), Mode::from_raw_mode(0o600)).unwrap();
        fs::create_dir(top.join("skills")).unwrap();
        fs::set_permissions(top.join("a/locked"), fs::Permissions::from_mode(0o000)).unwrap();
        let root = File::open(top).unwrap();
        let (found, skipped) = listed(&root, &[b"skills"], 100);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c", "d", "a/file", "a/locked", "a/locked/inner"]);
        assert_eq!(skipped, 0);
        assert_eq!(found[4].1, EntryKind::HardLink { index: 1 });
        assert_eq!(
            found[2].1,
            EntryKind::Symlink {
                target: b"/etc".to_vec()
            }
        );
        assert_eq!(found[3].1, EntryKind::Fifo);
        let (found, skipped) = listed(&root, &[b"skills"], 3);
        assert_eq!((found.len(), skipped > 0), (3, true));
    }

    #[test]
    fn nothing_is_opened_through_a_link_or_upwards() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path();
        fs::create_dir(top.join("in")).unwrap();
        fs::write(top.join("secret"), "s").unwrap();
        symlink("../secret", top.join("in/link")).unwrap();
        symlink("..", top.join("in/up")).unwrap();
        let root = File::open(top.join("in")).unwrap();
        for path in ["link", "up/secret", "../secret", "..", "", "x/../../secret"] {
            assert!(open_file(root.as_fd(), path.as_bytes()).is_err(), "{path}");
        }
        assert!(open_directory(root.as_fd(), b"up").is_err());
        assert!(open_directory(root.as_fd(), b"..").is_err());
    }

    #[test]
    fn the_walk_over_a_very_deep_tree_ends() {
        let directory = tempfile::tempdir().unwrap();
        let root = File::open(directory.path()).unwrap();
        let mut deep: OwnedFd = root.try_clone().unwrap().into();
        for _ in 0..3000 {
            rustix::fs::mkdirat(&deep, "d", Mode::from_raw_mode(0o755)).unwrap();
            deep = rustix::fs::openat(&deep, "d", DIRECTORY_FLAGS, Mode::empty()).unwrap();
        }
        let (found, skipped) = listed(&root, &[], 10_000);
        assert_eq!((found.len(), skipped), (2048, 1));
    }
}
