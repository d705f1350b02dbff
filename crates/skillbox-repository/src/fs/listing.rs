//! Lists one directory through its descriptor.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, FileType, RawDir, SeekFrom, seek, statat};

/// Fits a few hundred names, so that most directories take one `getdents64` call.
const BUFFER_BYTES: usize = 16 * 1024;

/// A name in a directory and the type of its file. A link has the type of the link, not of its target.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DirEntry {
    pub(crate) name: Box<[u8]>,
    pub(crate) kind: EntryKind,
}

/// The file types that scans distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EntryKind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link to anything.
    Link,
    /// A FIFO, a socket or a device.
    Special,
}

/// The entries of a directory, up to its end or up to an error.
pub(crate) struct Listing {
    /// Sorted by the bytes of the name.
    pub(crate) entries: Vec<DirEntry>,
    /// Why the listing may be incomplete.
    pub(crate) error: Option<io::Error>,
}

/// Lists the entries of `directory` that `keep` accepts. After an error, the listing has the entries read before it.
pub(crate) fn list_dir(directory: BorrowedFd<'_>, mut keep: impl FnMut(&[u8], EntryKind) -> bool) -> Listing {
    let mut kept = Vec::new();
    // A descriptor keeps its read position: without this, a second listing would find nothing.
    if let Err(error) = seek(directory, SeekFrom::Start(0)) {
        return Listing {
            entries: kept,
            error: Some(error.into()),
        };
    }
    let mut buffer = [MaybeUninit::<u8>::uninit(); BUFFER_BYTES];
    let mut entries = RawDir::new(directory, &mut buffer);
    let mut failure = None;
    while let Some(entry) = entries.next() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                failure = Some(error.into());
                break;
            }
        };
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        // An entry that was removed before its type was known is not listed.
        let Some(kind) = kind_of(directory, name, entry.file_type()) else {
            continue;
        };
        if keep(name.to_bytes(), kind) {
            kept.push(DirEntry {
                name: name.to_bytes().into(),
                kind,
            });
        }
    }
    kept.sort_unstable();
    Listing {
        entries: kept,
        error: failure,
    }
}

fn kind_of(directory: BorrowedFd<'_>, name: &CStr, listed: FileType) -> Option<EntryKind> {
    let file_type = match listed {
        // Some file systems do not report the type with the name.
        FileType::Unknown => FileType::from_raw_mode(statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?.st_mode),
        listed => listed,
    };
    Some(match file_type {
        FileType::Directory => EntryKind::Directory,
        FileType::RegularFile => EntryKind::File,
        FileType::Symlink => EntryKind::Link,
        _ => EntryKind::Special,
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn entries_are_sorted_and_have_their_types() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("b")).unwrap();
        fs::write(dir.path().join("c"), "").unwrap();
        std::os::unix::fs::symlink("c", dir.path().join("a")).unwrap();
        let listing = list_dir(File::open(dir.path()).unwrap().as_fd(), |_, _| true);
        let entries: Vec<_> = listing.entries.iter().map(|it| (&*it.name, it.kind)).collect();
        assert_eq!(
            entries,
            [
                (&b"a"[..], EntryKind::Link),
                (b"b", EntryKind::Directory),
                (b"c", EntryKind::File)
            ]
        );
        assert!(listing.error.is_none());
    }

    #[test]
    fn listing_a_removed_directory_fails() {
        let dir = tempfile::tempdir().unwrap();
        let open = File::open(dir.path()).unwrap();
        dir.close().unwrap();
        assert!(list_dir(open.as_fd(), |_, _| true).error.is_some());
    }
}
