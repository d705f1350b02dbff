//! Removes a tree that a hostile script may have created: of any depth, with any modes, without following links.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode};
use rustix::io::Errno;

use super::nofollow;

/// The maximum number of directories that are open at once. Deeper directories are first moved to the top of the tree.
const MAX_OPEN_DIRECTORIES: usize = 32;

/// Removes `name` in `parent` with everything below it. It is no error if `name` does not exist.
pub fn remove_tree(parent: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<()> {
    let stat = match nofollow::stat_child(parent, name) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error),
    };
    if nofollow::file_type(&stat) != FileType::Directory {
        return rustix::fs::unlinkat(parent, name, AtFlags::empty());
    }
    let top = open_for_removal(parent, name)?;
    let mut removal = Removal {
        top: top.as_fd(),
        moved_count: 0,
    };
    loop {
        let count_before = removal.moved_count;
        removal.remove_children(top.as_fd(), 0)?;
        if removal.moved_count == count_before {
            return rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
        }
    }
}

/// A removal in progress.
struct Removal<'a> {
    top: BorrowedFd<'a>,
    moved_count: u64,
}

impl Removal<'_> {
    fn remove_children(&mut self, directory: BorrowedFd<'_>, depth: usize) -> rustix::io::Result<()> {
        for name in list_names(directory)? {
            let name = name.as_bytes();
            match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => continue,
                // unlink(2) gives EISDIR for a directory on Linux, and EPERM according to POSIX.
                Err(Errno::ISDIR | Errno::PERM) => {}
                Err(error) => return Err(error),
            }
            if depth >= MAX_OPEN_DIRECTORIES {
                self.move_to_top(directory, name)?;
                continue;
            }
            let below = open_for_removal(directory, name)?;
            self.remove_children(below.as_fd(), depth + 1)?;
            match rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn move_to_top(&mut self, directory: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<()> {
        loop {
            self.moved_count += 1;
            let new_name = format!(".removing-{}", self.moved_count);
            let flags = rustix::fs::RenameFlags::NOREPLACE;
            match rustix::fs::renameat_with(directory, name, self.top, &new_name, flags) {
                Err(Errno::EXIST) => {}
                renamed => return renamed,
            }
        }
    }
}

fn list_names(directory: BorrowedFd<'_>) -> rustix::io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(directory)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
    }
    Ok(names)
}

/// Opens a directory whose content is to be removed, after making it readable, writable and searchable.
fn open_for_removal(parent: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    let stat = nofollow::stat_child(parent, name)?;
    if nofollow::file_type(&stat) == FileType::Directory && stat.st_mode & 0o700 != 0o700 {
        rustix::fs::chmodat(parent, name, Mode::from_raw_mode(0o700), AtFlags::empty())?;
    }
    nofollow::open_child_directory(parent, name)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn deep_and_unreadable_trees_are_removed_and_link_targets_stay() {
        let directory = tempfile::tempdir().unwrap();
        let kept = directory.path().join("kept");
        fs::write(&kept, "kept").unwrap();
        let tree = directory.path().join("tree");
        fs::create_dir(&tree).unwrap();
        std::os::unix::fs::symlink(directory.path(), tree.join("link")).unwrap();
        let mut deep: OwnedFd = File::open(&tree).unwrap().into();
        for _ in 0..3000 {
            rustix::fs::mkdirat(&deep, "deeper", Mode::from_raw_mode(0o755)).unwrap();
            deep = nofollow::open_child_directory(deep.as_fd(), b"deeper").unwrap();
        }
        let locked = tree.join("locked");
        fs::create_dir(&locked).unwrap();
        fs::write(locked.join("file"), "").unwrap();
        fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).unwrap();
        let parent = File::open(directory.path()).unwrap();
        remove_tree(parent.as_fd(), b"tree").unwrap();
        assert!(!tree.exists());
        assert_eq!(fs::read_to_string(kept).unwrap(), "kept");
        remove_tree(parent.as_fd(), b"tree").unwrap();
    }
}
