//! The names in one directory, read through its descriptor.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, FileType, RawDir, SeekFrom, seek, statat};

/// Names that are never looked into: history, caches and installed packages hold no skills of their own.
const SKIPPED: [&[u8]; 4] = [b".git", b"node_modules", b".venv", b"__pycache__"];

/// Big enough for a few hundred names, so that most directories take one call.
const BUFFER: usize = 16 * 1024;

/// Whether discovery passes by a directory of this name.
pub(crate) fn is_skipped(name: &[u8]) -> bool {
    SKIPPED.contains(&name)
}

/// One name with the kind of thing it stands for; a link is told as a link.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    pub(crate) bytes: Box<[u8]>,
    pub(crate) kind: NameKind,
}

/// The kinds that matter to discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NameKind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link, to whatever.
    Link,
    /// A FIFO, a socket, a device.
    Special,
}

/// What was read before the directory ended, or before it failed.
pub(crate) struct Listing {
    /// Sorted by bytes.
    pub(crate) names: Vec<Name>,
    /// Why the listing may be incomplete.
    pub(crate) broke_off: Option<io::Error>,
}

/// Lists `directory`, keeping the names that `keep` accepts. A failure half-way keeps what was read until then.
pub(crate) fn list(directory: BorrowedFd<'_>, mut keep: impl FnMut(&[u8], NameKind) -> bool) -> Listing {
    let mut names = Vec::new();
    // A descriptor remembers how far it was listed: without this, a second listing would find nothing.
    if let Err(error) = seek(directory, SeekFrom::Start(0)) {
        let broke_off = Some(error.into());
        return Listing { names, broke_off };
    }
    let mut buffer = [MaybeUninit::<u8>::uninit(); BUFFER];
    let mut entries = RawDir::new(directory, &mut buffer);
    let mut broke_off = None;
    while let Some(entry) = entries.next() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                broke_off = Some(error.into());
                break;
            }
        };
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        // A name that vanished before its kind was known is no longer there to be listed.
        let Some(kind) = kind_of(directory, name, entry.file_type()) else {
            continue;
        };
        if keep(name.to_bytes(), kind) {
            names.push(Name {
                bytes: name.to_bytes().into(),
                kind,
            });
        }
    }
    names.sort_unstable();
    Listing { names, broke_off }
}

fn kind_of(directory: BorrowedFd<'_>, name: &CStr, told: FileType) -> Option<NameKind> {
    let file_type = match told {
        // Some file systems do not tell the kind with the name.
        FileType::Unknown => FileType::from_raw_mode(statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?.st_mode),
        told => told,
    };
    Some(match file_type {
        FileType::Directory => NameKind::Directory,
        FileType::RegularFile => NameKind::File,
        FileType::Symlink => NameKind::Link,
        _ => NameKind::Special,
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn names_come_sorted_with_their_kinds() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("b")).unwrap();
        fs::write(dir.path().join("c"), "").unwrap();
        std::os::unix::fs::symlink("c", dir.path().join("a")).unwrap();
        let listing = list(File::open(dir.path()).unwrap().as_fd(), |_, _| true);
        let names: Vec<_> = listing.names.iter().map(|name| (&*name.bytes, name.kind)).collect();
        assert_eq!(
            names,
            [
                (&b"a"[..], NameKind::Link),
                (b"b", NameKind::Directory),
                (b"c", NameKind::File)
            ]
        );
        assert!(listing.broke_off.is_none());
    }

    #[test]
    fn a_directory_that_is_gone_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let open = File::open(dir.path()).unwrap();
        dir.close().unwrap();
        assert!(list(open.as_fd(), |_, _| true).broke_off.is_some());
    }
}
