//! Mount attributes on kernels without mount_setattr(2), before Linux 5.12: one remount per mount.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags, StatVfsMountFlags, fstatvfs, openat};
use rustix::mount::{MountAttrFlags, MountFlags, mount_remount};

use super::mount_attributes::{MountScope, NO_DEVICES, NO_EXEC, NO_SUID, READ_ONLY};

/// The attributes that a remount can set: the flag of mount_setattr(2), of statvfs(3) and of mount(2).
const SETTABLE_ATTRIBUTES: [(MountAttrFlags, StatVfsMountFlags, MountFlags); 4] = [
    (READ_ONLY, StatVfsMountFlags::RDONLY, MountFlags::RDONLY),
    (NO_SUID, StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
    (NO_DEVICES, StatVfsMountFlags::NODEV, MountFlags::NODEV),
    (NO_EXEC, StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
];

/// The flags that a remount preserves but never adds: the flag of statvfs(3) and of mount(2).
const PRESERVED_FLAGS: [(StatVfsMountFlags, MountFlags); 3] = [
    (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
    (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
    (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
];

/// Sets attributes on an attached mount, and on the mounts below it if the scope is recursive.
pub(super) fn set_attributes(mount: BorrowedFd<'_>, attributes: MountAttrFlags, scope: MountScope) -> io::Result<()> {
    remount(mount, attributes)?;
    if scope == MountScope::Recursive {
        for path in mounts_below(mount)? {
            let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let below: OwnedFd = openat(mount, &path, flags, Mode::empty())?;
            remount(below.as_fd(), attributes)?;
        }
    }
    Ok(())
}

fn remount(mount: BorrowedFd<'_>, attributes: MountAttrFlags) -> io::Result<()> {
    let flags = remount_flags(attributes, fstatvfs(mount)?.f_flag)?;
    Ok(mount_remount(
        format!("/proc/self/fd/{}", mount.as_raw_fd()),
        flags,
        c"",
    )?)
}

/// The remount flags that add attributes to a mount. A remount replaces all flags, so the current ones are repeated. In
/// a user namespace the kernel refuses a remount that drops a flag of the host.
fn remount_flags(attributes: MountAttrFlags, current: StatVfsMountFlags) -> io::Result<MountFlags> {
    let settable = SETTABLE_ATTRIBUTES
        .iter()
        .fold(MountAttrFlags::empty(), |all, (attribute, ..)| all | *attribute);
    let unsupported = attributes.difference(settable);
    if !unsupported.is_empty() {
        let message = format!("a remount cannot set the mount attributes {unsupported:?}");
        return Err(io::Error::new(io::ErrorKind::Unsupported, message));
    }
    let mut flags = MountFlags::BIND;
    for (attribute, stat, flag) in SETTABLE_ATTRIBUTES {
        flags.set(flag, attributes.contains(attribute) || current.contains(stat));
    }
    for (stat, flag) in PRESERVED_FLAGS {
        flags.set(flag, current.contains(stat));
    }
    Ok(flags)
}

/// The paths of the mounts below a mount, relative to it, parents before children.
fn mounts_below(mount: BorrowedFd<'_>) -> io::Result<Vec<PathBuf>> {
    let fd_info = fs::read_to_string(format!("/proc/self/fdinfo/{}", mount.as_raw_fd()))?;
    let id = fd_info.lines().find_map(|line| line.strip_prefix("mnt_id:"));
    let id = id
        .and_then(|id| id.trim().parse().ok())
        .ok_or(io::ErrorKind::InvalidData)?;
    Ok(mount_points_below(id, &fs::read_to_string("/proc/self/mountinfo")?))
}

/// The mount points below the mount with this id, relative to it, from the text of `mountinfo`, which lists parents
/// before children.
fn mount_points_below(id: u64, mountinfo: &str) -> Vec<PathBuf> {
    let mut ids = BTreeSet::from([id]);
    let mut top = PathBuf::new();
    let mut found = Vec::new();
    for line in mountinfo.lines() {
        let mut fields = line.split(' ');
        let mut number = || fields.next().and_then(|field| field.parse::<u64>().ok());
        let (Some(own), Some(parent)) = (number(), number()) else {
            continue;
        };
        let Some(point) = fields.nth(2).map(unescape) else {
            continue;
        };
        if own == id {
            top = point;
        } else if ids.contains(&parent) {
            ids.insert(own);
            if let Ok(path) = point.strip_prefix(&top) {
                found.push(path.to_owned());
            }
        }
    }
    found
}

/// Decodes the octal escapes of `mountinfo`, such as `\040` for a space.
fn unescape(field: &str) -> PathBuf {
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
    PathBuf::from(OsStr::from_bytes(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_below_are_found_by_parent_and_not_by_name() {
        let table = "\
20 1 8:1 / / rw - ext4 /dev/sda rw
30 20 0:5 / /new rw - tmpfs none rw
31 30 8:1 /usr /new/usr rw - ext4 /dev/sda rw
32 31 0:6 / /new/usr/a\\040b rw - tmpfs none rw
33 20 0:7 / /new/usr/elsewhere rw - tmpfs none rw
34 32 0:8 / /new/usr/a\\040b/c rw - tmpfs none rw
";
        assert_eq!(
            mount_points_below(31, table),
            [PathBuf::from("a b"), PathBuf::from("a b/c")]
        );
        assert_eq!(mount_points_below(34, table), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_remount_keeps_flags_and_refuses_attributes_that_it_cannot_set() {
        let current = StatVfsMountFlags::NOEXEC | StatVfsMountFlags::RELATIME;
        assert_eq!(
            remount_flags(READ_ONLY | NO_SUID, current).unwrap(),
            MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NOEXEC | MountFlags::RELATIME
        );
        let error = remount_flags(READ_ONLY | MountAttrFlags::MOUNT_ATTR_NOSYMFOLLOW, current).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
        assert!(error.to_string().contains("NOSYMFOLLOW"), "{error}");
    }
}
