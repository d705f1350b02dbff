//! Writes a file tree that the other side sends: below one directory, within limits, without following links.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use skillbox_model::{RelPath, RelPathError};

use crate::message::{Entry, EntryKind};

/// Why an entry could not be written.
#[derive(Debug, thiserror::Error)]
pub enum TreeWriteError {
    /// The path is not a valid path below the directory.
    #[error("the path cannot be used")]
    InvalidPath(#[from] RelPathError),
    /// The limit of entries or bytes was exceeded.
    #[error("more than {0} {1}")]
    LimitExceeded(u64, &'static str),
    /// Data without a file or beyond its announced size, or an entry before the data of a file is complete.
    #[error("unexpected data that belongs to no file")]
    UnexpectedData,
    /// A system call failed.
    #[error("cannot write {path}")]
    System {
        /// The path.
        path: RelPath,
        /// The error.
        source: Errno,
    },
}

/// Writes entries below a directory.
#[derive(Debug)]
pub struct TreeWriter {
    root: OwnedFd,
    owner: Option<(u32, u32)>,
    bytes_left: u64,
    entries_left: u64,
    max_bytes: u64,
    max_entries: u64,
    current_file: Option<OpenFile>,
    /// The modes of directories, which [`Self::finish`] sets in reverse order, so that children are set before parents.
    directory_modes: Vec<(RelPath, u32)>,
}

#[derive(Debug)]
struct OpenFile {
    path: RelPath,
    file: OwnedFd,
    missing_bytes: u64,
}

impl TreeWriter {
    /// A writer below `root`. The entries will belong to `owner` (uid and gid), or else to the user of this process.
    pub fn new(root: OwnedFd, owner: Option<(u32, u32)>, max_bytes: u64, max_entries: u64) -> Self {
        Self {
            root,
            owner,
            bytes_left: max_bytes,
            entries_left: max_entries,
            max_bytes,
            max_entries,
            current_file: None,
            directory_modes: Vec::new(),
        }
    }

    /// Writes one entry, whose parent must exist. The bytes of a file are passed to [`Self::append_data`] afterwards.
    pub fn write_entry(&mut self, entry: &Entry) -> Result<(), TreeWriteError> {
        let path = RelPath::parse(&entry.path)?;
        if self.current_file.is_some() {
            return Err(TreeWriteError::UnexpectedData);
        }
        self.entries_left = self
            .entries_left
            .checked_sub(1)
            .ok_or(TreeWriteError::LimitExceeded(self.max_entries, "entries"))?;
        let written = match &entry.kind {
            EntryKind::Directory { mode } => self.create_directory(&path, *mode),
            EntryKind::File { mode, size } => {
                self.bytes_left = self
                    .bytes_left
                    .checked_sub(*size)
                    .ok_or(TreeWriteError::LimitExceeded(self.max_bytes, "bytes"))?;
                self.open_file(&path, *mode, *size)
            }
            EntryKind::Symlink { target } => self.create_at(&path, |parent, name| {
                rustix::fs::symlinkat(target.as_slice(), parent, name)
            }),
            EntryKind::Fifo => self.create_node(&path, FileType::Fifo),
            EntryKind::Socket => self.create_node(&path, FileType::Socket),
            // A script cannot create a device, and the caller uses `create_hard_link` for hard links.
            EntryKind::Device | EntryKind::HardLink { .. } => Ok(()),
        };
        written.map_err(|source| TreeWriteError::System { path, source })
    }

    /// Creates a hard link at `path` to the earlier file `first`.
    pub fn create_hard_link(&mut self, path: &RelPath, first: &RelPath) -> Result<(), TreeWriteError> {
        let linked = open_parent(self.root.as_fd(), first).and_then(|(from, old)| {
            self.create_at(path, |parent, name| {
                rustix::fs::linkat(&from, old, parent, name, AtFlags::empty())
            })
        });
        linked.map_err(|source| TreeWriteError::System {
            path: path.clone(),
            source,
        })
    }

    /// Creates a sparse file of this size, in place of a file whose bytes are not requested.
    pub fn create_sparse_file(&mut self, path: &RelPath, size: u64) -> Result<(), TreeWriteError> {
        let made = self
            .create_file(path, 0o644)
            .and_then(|file| rustix::fs::ftruncate(&file, size));
        made.map_err(|source| TreeWriteError::System {
            path: path.clone(),
            source,
        })
    }

    /// Appends bytes to the file that was written last.
    pub fn append_data(&mut self, mut data: &[u8]) -> Result<(), TreeWriteError> {
        let Some(open) = &mut self.current_file else {
            return Err(TreeWriteError::UnexpectedData);
        };
        open.missing_bytes = open
            .missing_bytes
            .checked_sub(data.len() as u64)
            .ok_or(TreeWriteError::UnexpectedData)?;
        while !data.is_empty() {
            match rustix::io::write(&open.file, data) {
                Ok(count) => data = &data[count..],
                Err(Errno::INTR) => {}
                Err(source) => {
                    let path = open.path.clone();
                    return Err(TreeWriteError::System { path, source });
                }
            }
        }
        if open.missing_bytes == 0 {
            self.current_file = None;
        }
        Ok(())
    }

    /// Whether bytes of the file that was written last are missing.
    pub fn expects_data(&self) -> bool {
        self.current_file.is_some()
    }

    /// Sets the modes of the directories.
    pub fn finish(&mut self) -> Result<(), TreeWriteError> {
        while let Some((path, mode)) = self.directory_modes.pop() {
            let set = open_parent(self.root.as_fd(), &path).and_then(|(parent, name)| {
                rustix::fs::chmodat(&parent, name, Mode::from_raw_mode(mode), AtFlags::empty())
            });
            set.map_err(|source| TreeWriteError::System { path, source })?;
        }
        Ok(())
    }

    fn create_directory(&mut self, path: &RelPath, mode: u32) -> rustix::io::Result<()> {
        let made = self.create_at(path, |parent, name| {
            match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o755)) {
                // Some directories of the workspace exist before the job.
                Err(Errno::EXIST) => {
                    let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
                    match FileType::from_raw_mode(stat.st_mode) {
                        FileType::Directory => Ok(()),
                        _ => Err(Errno::EXIST),
                    }
                }
                made => made,
            }
        });
        if mode & 0o777 != 0o755 {
            self.directory_modes.push((path.clone(), mode & 0o777));
        }
        made
    }

    fn open_file(&mut self, path: &RelPath, mode: u32, size: u64) -> rustix::io::Result<()> {
        let file = self.create_file(path, mode & 0o777)?;
        if size > 0 {
            self.current_file = Some(OpenFile {
                path: path.clone(),
                file,
                missing_bytes: size,
            });
        }
        Ok(())
    }

    fn create_file(&self, path: &RelPath, mode: u32) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut created = None;
        self.create_at(path, |parent, name| {
            created = Some(rustix::fs::openat(parent, name, flags, Mode::from_raw_mode(mode))?);
            Ok(())
        })?;
        created.ok_or(Errno::IO)
    }

    fn create_node(&self, path: &RelPath, kind: FileType) -> rustix::io::Result<()> {
        self.create_at(path, |parent, name| {
            rustix::fs::mknodat(parent, name, kind, Mode::from_raw_mode(0o600), 0)
        })
    }

    fn create_at(
        &self,
        path: &RelPath,
        make: impl FnOnce(BorrowedFd<'_>, &[u8]) -> rustix::io::Result<()>,
    ) -> rustix::io::Result<()> {
        let (parent, name) = open_parent(self.root.as_fd(), path)?;
        make(parent.as_fd(), name)?;
        let Some((uid, gid)) = self.owner else { return Ok(()) };
        let (uid, gid) = (rustix::fs::Uid::from_raw(uid), rustix::fs::Gid::from_raw(gid));
        rustix::fs::chownat(&parent, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
    }
}

fn open_parent<'a>(root: BorrowedFd<'_>, path: &'a RelPath) -> rustix::io::Result<(OwnedFd, &'a [u8])> {
    let parent = path.parent();
    let parent = parent.as_ref().map_or(&b""[..], |parent| parent.as_bytes());
    Ok((crate::tree_walk::open_directory(root, parent)?, path.file_name()))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;

    use super::*;

    fn writer(directory: &tempfile::TempDir, max_bytes: u64, max_entries: u64) -> TreeWriter {
        TreeWriter::new(
            File::open(directory.path()).unwrap().into(),
            None,
            max_bytes,
            max_entries,
        )
    }

    fn file(path: &str, size: u64) -> Entry {
        Entry {
            path: path.into(),
            kind: EntryKind::File { mode: 0o644, size },
        }
    }

    fn tree(path: &str) -> Entry {
        Entry {
            path: path.into(),
            kind: EntryKind::Directory { mode: 0o555 },
        }
    }

    #[test]
    fn trees_are_written_with_their_modes() {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = writer(&directory, 100, 10);
        writer.write_entry(&tree("a")).unwrap();
        writer.write_entry(&file("a/b", 4)).unwrap();
        assert!(writer.expects_data());
        writer.append_data(b"fo").unwrap();
        writer.append_data(b"ur").unwrap();
        assert!(!writer.expects_data());
        writer.write_entry(&file("a/empty", 0)).unwrap();
        writer.finish().unwrap();
        assert_eq!(fs::read_to_string(directory.path().join("a/b")).unwrap(), "four");
        let mode = fs::metadata(directory.path().join("a")).unwrap();
        assert_eq!(
            std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o777,
            0o555
        );
    }

    #[test]
    fn nothing_is_written_outside_or_through_a_link() {
        let directory = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        symlink(outside.path(), directory.path().join("link")).unwrap();
        let mut writer = writer(&directory, 100, 100);
        for path in ["../x", "/x", "a/../../x", "link/x", "link", "", "."] {
            assert!(writer.write_entry(&file(path, 0)).is_err(), "{path}");
        }
        assert!(writer.write_entry(&tree("link/y")).is_err());
        assert!(writer.write_entry(&tree("link")).is_err());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[test]
    fn limits_are_checked_before_anything_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = writer(&directory, 10, 2);
        assert!(matches!(
            writer.write_entry(&file("a", 1 << 40)),
            Err(TreeWriteError::LimitExceeded(10, _))
        ));
        writer.write_entry(&file("b", 3)).unwrap();
        assert!(matches!(
            writer.append_data(b"four"),
            Err(TreeWriteError::UnexpectedData)
        ));
        let mut second = self::writer(&directory, 10, 1);
        second.write_entry(&file("c", 0)).unwrap();
        assert!(matches!(second.append_data(b"x"), Err(TreeWriteError::UnexpectedData)));
        assert!(matches!(
            second.write_entry(&file("d", 0)),
            Err(TreeWriteError::LimitExceeded(1, _))
        ));
    }
}
