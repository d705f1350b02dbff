//! File systems whose changes the kernel does not hear of.

use std::path::Path;

/// Magic numbers of file systems that others change behind the kernel's back (`linux/magic.h` and the file systems'
/// own headers): network file systems, shares of a virtual machine's host, and user-space file systems of all kinds.
const REMOTE: [u64; 12] = [
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

/// Whether the file system of `path` is one of these. One that cannot be asked is taken to be local: the watch on it
/// will fail if it is worse than that.
pub(super) fn is_remote(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|stat| REMOTE.contains(&(stat.f_type as u64 & 0xffff_ffff)))
}
