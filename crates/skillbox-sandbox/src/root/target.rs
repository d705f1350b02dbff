//! Opens or creates paths below a root without following links.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, mkdirat, openat, openat2};

use crate::plan::BindKind;

/// Opens a path below a root, and creates missing components. A symbolic link anywhere in the path is an error: an
/// earlier script of the session may have created one in the workspace to redirect the mount.
pub(crate) fn open_target(root: BorrowedFd<'_>, path: &str, kind: BindKind) -> io::Result<OwnedFd> {
    if let Some(existing) = open_existing(root, path, kind) {
        return Ok(existing);
    }
    let mut parts = path.split('/').filter(|part| !part.is_empty()).peekable();
    let mut current: Option<OwnedFd> = None;
    while let Some(part) = parts.next() {
        let parent = current.as_ref().map_or(root, AsFd::as_fd);
        let wanted = if parts.peek().is_some() {
            BindKind::Directory
        } else {
            kind
        };
        current = Some(open_or_create(parent, part, wanted)?);
    }
    match current {
        Some(current) => Ok(current),
        None => root.try_clone_to_owned(),
    }
}

/// Opens an existing path of the right kind in one system call. Returns none in every other case; the walk over the
/// components then creates the missing ones, or finds the error.
fn open_existing(root: BorrowedFd<'_>, path: &str, kind: BindKind) -> Option<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let found = openat2(root, path.trim_matches('/'), flags, Mode::empty(), resolve).ok()?;
    let wanted = match kind {
        BindKind::Directory => FileType::Directory,
        BindKind::File => FileType::RegularFile,
    };
    let is_wanted = fstat(&found).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == wanted);
    is_wanted.then_some(found)
}

/// Opens the parent directory of a path, and creates it if it is missing. Returns it with the last component.
pub(super) fn open_parent<'a>(root: BorrowedFd<'_>, path: &'a str) -> io::Result<(OwnedFd, &'a str)> {
    let (parent, name) = path
        .rsplit_once('/')
        .ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
    Ok((open_target(root, parent, BindKind::Directory)?, name))
}

fn open_or_create(parent: BorrowedFd<'_>, part: &str, kind: BindKind) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let found = match openat(parent, part, flags, Mode::empty()) {
        Err(rustix::io::Errno::NOENT) => {
            match kind {
                BindKind::Directory => mkdirat(parent, part, Mode::from_raw_mode(0o755))?,
                BindKind::File => {
                    let create = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                    openat(parent, part, create, Mode::from_raw_mode(0o644)).map(drop)?;
                }
            }
            openat(parent, part, flags, Mode::empty())?
        }
        found => found?,
    };
    match (kind, FileType::from_raw_mode(fstat(&found)?.st_mode)) {
        (BindKind::Directory, FileType::Directory) | (BindKind::File, FileType::RegularFile) => Ok(found),
        (_, FileType::Symlink) => Err(io::Error::from_raw_os_error(libc::ELOOP)),
        (BindKind::Directory, _) => Err(io::Error::from_raw_os_error(libc::ENOTDIR)),
        (BindKind::File, _) => Err(io::Error::from_raw_os_error(libc::EISDIR)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_components_are_created_and_links_are_refused() {
        let top = tempfile::tempdir().unwrap();
        let root = std::fs::File::open(top.path()).unwrap();
        open_target(root.as_fd(), "/a/b", BindKind::Directory).unwrap();
        open_target(root.as_fd(), "/a/f", BindKind::File).unwrap();
        assert!(top.path().join("a/b").is_dir() && top.path().join("a/f").is_file());

        std::os::unix::fs::symlink("/etc", top.path().join("out")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", top.path().join("a/link")).unwrap();
        for (path, kind, errno) in [
            ("/out", BindKind::Directory, libc::ELOOP),
            ("/out/passwd", BindKind::File, libc::ELOOP),
            ("/a/link", BindKind::File, libc::ELOOP),
            ("/a/f", BindKind::Directory, libc::ENOTDIR),
            ("/a/f/x", BindKind::File, libc::ENOTDIR),
            ("/a/b", BindKind::File, libc::EISDIR),
        ] {
            let error = open_target(root.as_fd(), path, kind).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(errno), "{path}");
        }
    }
}
