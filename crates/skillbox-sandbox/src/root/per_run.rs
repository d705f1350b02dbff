//! What each run mounts on its copy of the skeleton.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, openat};

use super::skeleton::small_filesystem;
use super::target::open_target;
use crate::kernel::mount::{self, Depth, FsOption, NO_DEVICES, NO_EXEC, NO_SUID, READ_ONLY};
use crate::plan::{Access, BindKind, Op};

/// Mounts a private `/dev/shm`.
pub(crate) fn shared_memory(bytes: u64) -> io::Result<()> {
    let size = bytes.to_string();
    let options = [FsOption("size", &size), FsOption("mode", "1777")];
    let shm = mount::new_filesystem("tmpfs", &options, NO_SUID | NO_DEVICES | NO_EXEC)?;
    attach_at(shm.as_fd(), "/dev/shm")
}

/// Mounts a fresh `/proc` over the outer one, for the pid namespace of the caller.
pub(crate) fn fresh_proc() -> io::Result<()> {
    let options = [FsOption("hidepid", "invisible")];
    let proc = mount::new_filesystem("proc", &options, READ_ONLY | NO_SUID | NO_DEVICES | NO_EXEC)?;
    attach_at(proc.as_fd(), "/proc")
}

/// Covers the outer `/proc` with nothing.
pub(crate) fn cover_proc() -> io::Result<()> {
    let nothing = small_filesystem(4096, 2, READ_ONLY | NO_SUID | NO_DEVICES | NO_EXEC)?;
    attach_at(nothing.as_fd(), "/proc")
}

/// Covers a file of `/proc` with the empty device. A file that this kernel does not have needs no cover.
pub(crate) fn mask(path: &str) -> io::Result<()> {
    let target = match openat(
        CWD,
        path,
        OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW,
        Mode::empty(),
    ) {
        Err(rustix::io::Errno::NOENT) => return Ok(()),
        target => target?,
    };
    let null = mount::copy_tree(CWD, "/dev/null", Depth::One)?;
    mount::attach(null.as_fd(), target.as_fd())
}

/// What a mount that a run brings is mounted with: whatever is not read-only is for writing.
pub(crate) fn attributes_of(op: &Op) -> u64 {
    match op {
        Op::BindDescriptor {
            access: Access::ReadOnly,
            ..
        } => READ_ONLY | NO_SUID | NO_DEVICES,
        _ => NO_SUID | NO_DEVICES,
    }
}

/// Opens a path to mount on, which may have to be made.
pub(crate) fn mount_point(path: &str, kind: BindKind) -> io::Result<OwnedFd> {
    let root = openat(CWD, "/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    open_target(root.as_fd(), path, kind)
}

/// Mounts on a directory of the skeleton, which holds no link that is not ours.
fn attach_at(mount: BorrowedFd<'_>, path: &str) -> io::Result<()> {
    let target = openat(
        CWD,
        path,
        OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW,
        Mode::empty(),
    )?;
    mount::attach(mount, target.as_fd())
}
