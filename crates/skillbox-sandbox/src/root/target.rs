//! The place below a root that something is mounted on or made at.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, mkdirat, openat, openat2};

use crate::plan::BindKind;

/// Opens a path below a root, making what is missing. A link anywhere on the way is refused: the workspace of a
/// session holds what earlier scripts left there, and a link could lead the mount to another place.
pub(crate) fn open_target(root: BorrowedFd<'_>, path: &str, kind: BindKind) -> io::Result<OwnedFd> {
    if let Some(there) = open_at_once(root, path, kind) {
        return Ok(there);
    }
    let mut parts = path.split('/').filter(|part| !part.is_empty()).peekable();
    let mut here: Option<OwnedFd> = None;
    while let Some(part) = parts.next() {
        let above = here.as_ref().map_or(root, AsFd::as_fd);
        let wanted = if parts.peek().is_some() {
            BindKind::Directory
        } else {
            kind
        };
        here = Some(step_into(above, part, wanted)?);
    }
    match here {
        Some(here) => Ok(here),
        None => root.try_clone_to_owned(),
    }
}

/// The same in one call, where all of it is there and as it should be. What else there is to do, or to refuse, the way
/// step by step finds out.
fn open_at_once(root: BorrowedFd<'_>, path: &str, kind: BindKind) -> Option<OwnedFd> {
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

/// The directory that holds a path's last part, made as needed, and that part.
pub(super) fn open_parent<'a>(root: BorrowedFd<'_>, path: &'a str) -> io::Result<(OwnedFd, &'a str)> {
    let (parent, name) = path
        .rsplit_once('/')
        .ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
    Ok((open_target(root, parent, BindKind::Directory)?, name))
}

fn step_into(above: BorrowedFd<'_>, part: &str, kind: BindKind) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let found = match openat(above, part, flags, Mode::empty()) {
        Err(rustix::io::Errno::NOENT) => {
            match kind {
                BindKind::Directory => mkdirat(above, part, Mode::from_raw_mode(0o755))?,
                BindKind::File => {
                    let create = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                    openat(above, part, create, Mode::from_raw_mode(0o644)).map(drop)?;
                }
            }
            openat(above, part, flags, Mode::empty())?
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
    fn missing_parts_are_made_and_links_are_refused() {
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
