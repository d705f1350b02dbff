//! Detects file systems on which changes by other hosts cause no events.

use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::StatFs;

/// The magic numbers (`linux/magic.h` and the headers of the file systems) of network file systems, of shared folders
/// of virtual machines, and of user-space file systems.
const REMOTE_FS_MAGIC: [u64; 12] = [
    0x6969,      // NFS
    0xff53_4d42, // CIFS
    0xfe53_4d42, // SMB2 and later
    0x517b,      // SMB
    0x6573_5546, // FUSE: sshfs, virtiofs and others
    0x0102_1997, // 9P
    0x00c3_6400, // Ceph
    0x5346_414f, // AFS
    0x6b41_4653, // AFS, in the kernel
    0x7375_7245, // Coda
    0x0bd0_0bd0, // Lustre
    0x786f_4256, // VirtualBox shared folders
];

/// Whether `path` is on a remote file system. If `statfs` fails, the file system counts as local, and the watch reports
/// the error.
pub(super) fn is_remote(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|stat| is_remote_magic(&stat))
}

/// Whether an open file or directory is on a file system on which changes by other hosts cause no events.
pub fn is_remote_file_system(file: BorrowedFd<'_>) -> std::io::Result<bool> {
    Ok(is_remote_magic(&rustix::fs::fstatfs(file)?))
}

fn is_remote_magic(stat: &StatFs) -> bool {
    REMOTE_FS_MAGIC.contains(&(stat.f_type as u64 & 0xffff_ffff))
}
