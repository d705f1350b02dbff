//! Mounts an overlay on the skill of a run: the frozen skill is the lower layer, and the workspace holds the upper one.
//!
//! The process that mounts is in the user namespace of the sandbox. There the kernel stores its own marks in `user.`
//! attributes (`userxattr`, Linux 5.11).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{fstat, fstatfs};
use rustix::process::{fchdir, getegid, geteuid};

use super::sandbox_mounts::{open_mount_target, run_mount_attributes};
use crate::kernel::mount::{self, FsOption};
use crate::plan::{BindAccess, BindKind, WritableSkill};

/// Mounts the overlay at `target`, where the skill is mounted read-only. The upper layer is the directory `name` in
/// `layers`; the work directory is beside it.
pub(super) fn mount_overlay(layers: BorrowedFd<'_>, target: &str, name: &str) -> io::Result<()> {
    let skill = open_mount_target(target, BindKind::Directory)?;
    let stat = fstat(&skill)?;
    if (stat.st_uid, stat.st_gid) != (geteuid().as_raw(), getegid().as_raw()) {
        // The file system of the skill has no idmapped mounts. Its files would belong to nobody, and the script could
        // change none of them.
        return Err(io::Error::from_raw_os_error(libc::EOVERFLOW));
    }
    // The other two layers are named relative to the working directory: their path is covered by now, and a sandbox
    // without /proc has no path for a descriptor.
    fchdir(layers)?;
    let options = [
        FsOption("lowerdir", target),
        FsOption("upperdir", name),
        FsOption("workdir", WritableSkill::WORK_DIRECTORY),
        FsOption("index", "off"),
        FsOption("xino", "off"),
    ];
    // `volatile`: without it the kernel would write the whole file system of the workspace to its disk at the unmount,
    // for files that are discarded. It takes a tenth of the time of the mount, and a file system in memory has no disk.
    let flags: &[&str] = if fstatfs(layers)?.f_type == libc::TMPFS_MAGIC {
        &["userxattr"]
    } else {
        &["userxattr", "volatile"]
    };
    let attributes = run_mount_attributes(BindAccess::ReadWrite);
    let overlay = mount::new_filesystem_with_flags("overlay", &options, flags, attributes)?;
    mount::attach(overlay.as_fd(), skill.as_fd())
}
