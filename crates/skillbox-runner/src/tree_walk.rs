//! Looking through a tree that a hostile script may have made: one directory open at a time, following no link.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::message::{Entry, EntryKind};

/// Deepest directory that is looked into: no path is longer.
const MAX_DEPTH: usize = 2048;

/// What to look through.
#[derive(Clone, Copy, Debug)]
pub struct WalkOptions<'a> {
    /// The top.
    pub root: BorrowedFd<'a>,
    /// Names at the top that are left out.
    pub skip: &'a [&'a [u8]],
    /// Most entries that are told.
    pub max_entries: u64,
}

/// Tells everything below a directory, parents first; gives how much could not be told.
pub fn walk_tree<E: From<Errno>>(how: WalkOptions<'_>, tell: &mut dyn FnMut(&Entry) -> Result<(), E>) -> Result<u64, E> {
    let mut left_out = 0;
    let mut told: u64 = 0;
    let mut seen: HashMap<(u64, u64), u32> = HashMap::new();
    // Paths, not descriptors: a deep or broad tree must not use up what may be open.
    let mut waiting: Vec<Vec<u8>> = vec![Vec::new()];
    while let Some(directory) = waiting.pop() {
        let depth = if directory.is_empty() {
            0
        } else {
            directory.split(|byte| *byte == b'/').count()
        };
        let Ok(open) = open_directory(how.root, &directory) else {
            left_out += 1;
            continue;
        };
        let mut names: Vec<Vec<u8>> = Vec::new();
        for item in Dir::read_from(&open)? {
            let name = item?.file_name().to_bytes().to_vec();
            let skipped = depth == 0 && how.skip.contains(&name.as_slice());
            if name != b"." && name != b".." && !skipped {
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
            if told >= how.max_entries || path.len() > 4095 {
                left_out += 1;
                continue;
            }
            let Ok(stat) = rustix::fs::statat(&open, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW) else {
                left_out += 1;
                continue;
            };
            let index = u32::try_from(told).unwrap_or(u32::MAX);
            let mode = stat.st_mode & 0o777;
            let kind = match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => {
                    if depth < MAX_DEPTH {
                        below.push(path.clone());
                    } else {
                        left_out += 1;
                    }
                    EntryKind::Directory { mode }
                }
                FileType::RegularFile => match first_name(&mut seen, &stat, index) {
                    Some(index) => EntryKind::HardLink { index },
                    None => EntryKind::File {
                        mode,
                        size: u64::try_from(stat.st_size).unwrap_or(0),
                    },
                },
                FileType::Symlink => match rustix::fs::readlinkat(&open, name.as_slice(), Vec::new()) {
                    Ok(target) => EntryKind::Link {
                        target: target.into_bytes(),
                    },
                    Err(_) => {
                        left_out += 1;
                        continue;
                    }
                },
                FileType::Fifo => EntryKind::Fifo,
                FileType::Socket => EntryKind::Socket,
                _ => EntryKind::Device,
            };
            tell(&Entry { path, kind })?;
            told += 1;
        }
        waiting.extend(below.into_iter().rev());
    }
    Ok(left_out)
}

/// Where a file with several names was told first.
fn first_name(seen: &mut HashMap<(u64, u64), u32>, stat: &rustix::fs::Stat, index: u32) -> Option<u32> {
    if stat.st_nlink < 2 {
        return None;
    }
    match seen.entry((stat.st_dev, stat.st_ino)) {
        std::collections::hash_map::Entry::Occupied(first) => Some(*first.get()),
        std::collections::hash_map::Entry::Vacant(place) => {
            place.insert(index);
            None
        }
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Opens a directory below `root`, one component at a time, through no link; the empty path is `root` itself. A
/// directory that its owner made unreadable is made readable: nothing lives that could mind.
pub fn open_directory(root: BorrowedFd<'_>, path: &[u8]) -> rustix::io::Result<OwnedFd> {
    // One call where the kernel has it; whatever it refuses is tried again step by step.
    let whole = if path.is_empty() { b"." } else { path };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    if let Ok(opened) = rustix::fs::openat2(root, whole, DIRECTORY, Mode::empty(), resolve) {
        return Ok(opened);
    }
    let mut current = rustix::fs::openat(root, ".", DIRECTORY, Mode::empty())?;
    for part in path.split(|byte| *byte == b'/').filter(|part| !part.is_empty()) {
        if part == b".." {
            return Err(Errno::ACCESS);
        }
        current = match rustix::fs::openat(&current, part, DIRECTORY, Mode::empty()) {
            Err(Errno::ACCESS) => {
                rustix::fs::chmodat(&current, part, Mode::from_raw_mode(0o700), AtFlags::empty())?;
                rustix::fs::openat(&current, part, DIRECTORY, Mode::empty())?
            }
            opened => opened?,
        };
    }
    Ok(current)
}

/// Opens a regular file below `root` for reading, through no link and without ever blocking.
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

    fn listed(root: &File, skip: &[&[u8]], max_entries: u64) -> (Vec<(String, EntryKind)>, u64) {
        let mut found = Vec::new();
        let how = WalkOptions {
            root: root.as_fd(),
            skip,
            max_entries,
        };
        let left_out = walk_tree::<Errno>(how, &mut |entry| {
            found.push((String::from_utf8(entry.path.clone()).unwrap(), entry.kind.clone()));
            Ok(())
        });
        (found, left_out.unwrap())
    }

    #[test]
    fn everything_is_told_as_what_it_is() {
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
        let (found, left_out) = listed(&root, &[b"skills"], 100);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c", "d", "a/file", "a/locked", "a/locked/inner"]);
        assert_eq!(left_out, 0);
        assert_eq!(found[4].1, EntryKind::HardLink { index: 1 });
        assert_eq!(
            found[2].1,
            EntryKind::Link {
                target: b"/etc".to_vec()
            }
        );
        assert_eq!(found[3].1, EntryKind::Fifo);
        let (found, left_out) = listed(&root, &[b"skills"], 3);
        assert_eq!((found.len(), left_out > 0), (3, true));
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
    fn a_very_deep_tree_ends() {
        let directory = tempfile::tempdir().unwrap();
        let root = File::open(directory.path()).unwrap();
        let mut deep: OwnedFd = root.try_clone().unwrap().into();
        for _ in 0..3000 {
            rustix::fs::mkdirat(&deep, "d", Mode::from_raw_mode(0o755)).unwrap();
            deep = rustix::fs::openat(&deep, "d", DIRECTORY, Mode::empty()).unwrap();
        }
        let (found, left_out) = listed(&root, &[], 10_000);
        assert_eq!((found.len(), left_out), (2048, 1));
    }
}
