//! Attributes of mounts on kernels without mount_setattr(2), before Linux 5.12: one remount(2) for each mount.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, StatVfsMountFlags, fstatvfs, openat};
use rustix::mount::{MountFlags, mount_remount};

use super::mount::{Depth, NO_DEVICES, NO_EXEC, NO_SUID, READ_ONLY};

/// Sets attributes on an attached mount, and on those below it where that is asked for.
pub(super) fn set_attributes(mount: BorrowedFd<'_>, attributes: u64, depth: Depth) -> io::Result<()> {
    remount(mount, attributes)?;
    if depth == Depth::Whole {
        for path in mounts_below(mount)? {
            let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let below: OwnedFd = openat(mount, &path, flags, Mode::empty())?;
            remount(below.as_fd(), attributes)?;
        }
    }
    Ok(())
}

fn remount(mount: BorrowedFd<'_>, attributes: u64) -> io::Result<()> {
    // A remount sets every flag anew, and in a user namespace none of the host's may be dropped.
    let has = fstatvfs(mount)?.f_flag;
    let mut flags = MountFlags::BIND;
    for (attribute, stat, flag) in [
        (READ_ONLY, StatVfsMountFlags::RDONLY, MountFlags::RDONLY),
        (NO_SUID, StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (NO_DEVICES, StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (NO_EXEC, StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (0, StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (0, StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (0, StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ] {
        flags.set(flag, attributes & attribute != 0 || has.contains(stat));
    }
    Ok(mount_remount(
        format!("/proc/self/fd/{}", mount.as_raw_fd()),
        flags,
        c"",
    )?)
}

/// Where other mounts lie below a mount, relative to it, outer ones first.
fn mounts_below(mount: BorrowedFd<'_>) -> io::Result<Vec<PathBuf>> {
    let about = fs::read_to_string(format!("/proc/self/fdinfo/{}", mount.as_raw_fd()))?;
    let id = about.lines().find_map(|line| line.strip_prefix("mnt_id:"));
    let id = id
        .and_then(|id| id.trim().parse().ok())
        .ok_or(io::ErrorKind::InvalidData)?;
    Ok(below(id, &fs::read_to_string("/proc/self/mountinfo")?))
}

/// The same, by the number of the mount and the text of `mountinfo`, which names parents before children.
fn below(id: u64, table: &str) -> Vec<PathBuf> {
    let mut family = BTreeSet::from([id]);
    let mut top = PathBuf::new();
    let mut found = Vec::new();
    for line in table.lines() {
        let mut fields = line.split(' ');
        let mut number = || fields.next().and_then(|field| field.parse::<u64>().ok());
        let (Some(own), Some(parent)) = (number(), number()) else {
            continue;
        };
        let Some(point) = fields.nth(2).map(unescaped) else {
            continue;
        };
        if own == id {
            top = point;
        } else if family.contains(&parent) {
            family.insert(own);
            if let Ok(path) = point.strip_prefix(&top) {
                found.push(path.to_owned());
            }
        }
    }
    found
}

/// Blanks and the like stand as octal numbers in the table.
fn unescaped(field: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let [first, more @ ..] = rest {
        let octal = (*first == b'\\')
            .then(|| more.get(..3).and_then(|digits| std::str::from_utf8(digits).ok()))
            .flatten();
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &more[3..];
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    Path::new(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(&bytes)).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_below_is_found_by_parents_and_not_by_names() {
        let table = "\
20 1 8:1 / / rw - ext4 /dev/sda rw
30 20 0:5 / /new rw - tmpfs none rw
31 30 8:1 /usr /new/usr rw - ext4 /dev/sda rw
32 31 0:6 / /new/usr/a\\040b rw - tmpfs none rw
33 20 0:7 / /new/usr/elsewhere rw - tmpfs none rw
34 32 0:8 / /new/usr/a\\040b/c rw - tmpfs none rw
";
        assert_eq!(below(31, table), [PathBuf::from("a b"), PathBuf::from("a b/c")]);
        assert_eq!(below(34, table), Vec::<PathBuf>::new());
    }
}
