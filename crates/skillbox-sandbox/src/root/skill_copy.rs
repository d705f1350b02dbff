//! Copies a skill for a script that may change it, where the kernel has no overlay for it.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fchmod, mkdirat, openat, statat, unlinkat};
use rustix::io::Errno;

/// The deepest directory that is copied. A frozen skill has no deeper one.
const MAX_DEPTH: usize = 64;
const BUFFER_BYTES: usize = 64 << 10;

const DIRECTORY_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Copies directories, files and links with their modes to the directory `name` in `parent`. An existing copy, of an
/// earlier run, is kept as it is.
pub(super) fn copy_skill(skill: BorrowedFd<'_>, parent: BorrowedFd<'_>, name: &str, max_bytes: u64) -> io::Result<()> {
    let to = openat(parent, name, DIRECTORY_FLAGS, Mode::empty())?;
    if !list(to.as_fd())?.is_empty() {
        return Ok(());
    }
    let from = openat(skill, ".", DIRECTORY_FLAGS, Mode::empty())?;
    let mut copy = Copy {
        bytes_left: max_bytes,
        buffer: vec![0; BUFFER_BYTES],
    };
    copy.copy_entries(from.as_fd(), to.as_fd(), 0)
}

/// Removes what [`copy_skill`] has created, but not the directory itself.
pub(super) fn remove_copy(parent: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    remove_entries(openat(parent, name, DIRECTORY_FLAGS, Mode::empty())?.as_fd(), 0)
}

struct Copy {
    bytes_left: u64,
    buffer: Vec<u8>,
}

impl Copy {
    fn copy_entries(&mut self, from: BorrowedFd<'_>, to: BorrowedFd<'_>, depth: usize) -> io::Result<()> {
        for name in list(from)? {
            let stat = statat(from, &name, AtFlags::SYMLINK_NOFOLLOW)?;
            let mode = Mode::from_raw_mode(stat.st_mode & 0o777);
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => {
                    if depth == MAX_DEPTH {
                        return Err(Errno::NAMETOOLONG.into());
                    }
                    mkdirat(to, &name, Mode::RWXU)?;
                    let below = openat(to, &name, DIRECTORY_FLAGS, Mode::empty())?;
                    let source = openat(from, &name, DIRECTORY_FLAGS, Mode::empty())?;
                    self.copy_entries(source.as_fd(), below.as_fd(), depth + 1)?;
                    fchmod(&below, mode)?;
                }
                FileType::RegularFile => self.copy_file(from, to, &name, mode)?,
                FileType::Symlink => {
                    let target = rustix::fs::readlinkat(from, &name, Vec::new())?;
                    rustix::fs::symlinkat(target, to, &name)?;
                }
                // A frozen skill has nothing else.
                _ => {}
            }
        }
        Ok(())
    }

    fn copy_file(&mut self, from: BorrowedFd<'_>, to: BorrowedFd<'_>, name: &CString, mode: Mode) -> io::Result<()> {
        let source = openat(
            from,
            name,
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let create = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let copy = openat(to, name, create, Mode::RUSR | Mode::WUSR)?;
        loop {
            let count = match rustix::io::read(&source, &mut self.buffer) {
                Ok(0) => break,
                Err(Errno::INTR) => continue,
                read => read?,
            };
            self.bytes_left = self.bytes_left.checked_sub(count as u64).ok_or(Errno::NOSPC)?;
            write_all(&copy, &self.buffer[..count])?;
        }
        Ok(fchmod(&copy, mode)?)
    }
}

fn write_all(file: &OwnedFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(file, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn remove_entries(directory: BorrowedFd<'_>, depth: usize) -> io::Result<()> {
    for name in list(directory)? {
        let stat = statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            unlinkat(directory, &name, AtFlags::empty())?;
            continue;
        }
        let below = openat(directory, &name, DIRECTORY_FLAGS, Mode::empty())?;
        fchmod(&below, Mode::RWXU)?;
        if depth < MAX_DEPTH {
            remove_entries(below.as_fd(), depth + 1)?;
        }
        unlinkat(directory, &name, AtFlags::REMOVEDIR)?;
    }
    Ok(())
}

fn list(directory: BorrowedFd<'_>) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn skill_and_layers() -> (tempfile::TempDir, File, File) {
        let top = tempfile::tempdir().unwrap();
        let skill = top.path().join("skill");
        fs::create_dir_all(skill.join("scripts")).unwrap();
        fs::write(skill.join("SKILL.md"), "text").unwrap();
        fs::write(skill.join("scripts/x.py"), "print(1)").unwrap();
        fs::set_permissions(skill.join("scripts/x.py"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(skill.join("scripts"), fs::Permissions::from_mode(0o555)).unwrap();
        symlink("../../out", skill.join("out")).unwrap();
        fs::create_dir_all(top.path().join("layers/s")).unwrap();
        let (from, to) = (
            File::open(&skill).unwrap(),
            File::open(top.path().join("layers")).unwrap(),
        );
        (top, from, to)
    }

    #[test]
    fn a_copy_has_the_files_links_and_modes_of_the_skill() {
        let (top, skill, layers) = skill_and_layers();
        copy_skill(skill.as_fd(), layers.as_fd(), "s", 100).unwrap();
        let copy = top.path().join("layers/s");
        assert_eq!(fs::read_to_string(copy.join("scripts/x.py")).unwrap(), "print(1)");
        let mode = |name: &str| fs::metadata(copy.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("scripts"), mode("scripts/x.py")), (0o555, 0o755));
        assert_eq!(fs::read_link(copy.join("out")).unwrap().to_str(), Some("../../out"));
        // The changes of an earlier run are kept.
        fs::write(copy.join("SKILL.md"), "changed").unwrap();
        copy_skill(skill.as_fd(), layers.as_fd(), "s", 100).unwrap();
        assert_eq!(fs::read_to_string(copy.join("SKILL.md")).unwrap(), "changed");
    }

    #[test]
    fn a_copy_over_the_limit_leaves_nothing() {
        let (top, skill, layers) = skill_and_layers();
        let error = copy_skill(skill.as_fd(), layers.as_fd(), "s", 11).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
        remove_copy(layers.as_fd(), "s").unwrap();
        assert_eq!(fs::read_dir(top.path().join("layers/s")).unwrap().count(), 0);
    }
}
