//! The mounts that each sandbox adds to its copy of the template.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, openat};

use super::target::open_target;
use super::template_root::create_tmpfs;
use crate::kernel::mount::{self, FsOption, MountAttrFlags, MountScope, NO_DEVICES, NO_EXEC, NO_SUID, READ_ONLY};
use crate::plan::{BindAccess, BindKind};

/// Mounts a private `/dev/shm`.
pub(crate) fn mount_shared_memory(bytes: u64) -> io::Result<()> {
    let size = bytes.to_string();
    let options = [FsOption("size", &size), FsOption("mode", "1777")];
    let shm = mount::new_filesystem("tmpfs", &options, NO_SUID | NO_DEVICES | NO_EXEC)?;
    attach_at(shm.as_fd(), "/dev/shm")
}

/// Mounts a private devpts(5) on `/dev/pts`. Its terminals are those of this sandbox alone: the kernel creates a new
/// instance for every mount. `max` keeps one sandbox from using up the terminals of the host (`kernel.pty.max`).
pub(crate) fn mount_terminals(max: u32) -> io::Result<()> {
    let max = max.to_string();
    let options = [
        FsOption("mode", "0620"),
        FsOption("ptmxmode", "0666"),
        FsOption("max", &max),
    ];
    let terminals = mount::new_filesystem("devpts", &options, NO_SUID | NO_EXEC)?;
    attach_at(terminals.as_fd(), "/dev/pts")
}

/// Mounts a fresh `/proc` over the outer one, for the pid namespace of the caller.
pub(crate) fn mount_fresh_proc() -> io::Result<()> {
    let options = [FsOption("hidepid", "invisible")];
    let proc = mount::new_filesystem("proc", &options, READ_ONLY | NO_SUID | NO_DEVICES | NO_EXEC)?;
    attach_at(proc.as_fd(), "/proc")
}

/// Covers the outer `/proc` with an empty directory.
pub(crate) fn cover_outer_proc() -> io::Result<()> {
    let empty = create_tmpfs(4096, 2, READ_ONLY | NO_SUID | NO_DEVICES | NO_EXEC)?;
    attach_at(empty.as_fd(), "/proc")
}

/// Covers a file of `/proc` with `/dev/null`. Does nothing if this kernel does not have the file.
pub(crate) fn mask_file(path: &str) -> io::Result<()> {
    let target = match openat(
        CWD,
        path,
        OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW,
        Mode::empty(),
    ) {
        Err(rustix::io::Errno::NOENT) => return Ok(()),
        target => target?,
    };
    let null = mount::clone_tree(CWD, "/dev/null", MountScope::Single)?;
    mount::attach(null.as_fd(), target.as_fd())
}

/// The attributes of a mount that the run adds.
pub(crate) fn run_mount_attributes(access: BindAccess) -> MountAttrFlags {
    match access {
        BindAccess::ReadOnly => READ_ONLY | NO_SUID | NO_DEVICES,
        BindAccess::ReadWrite => NO_SUID | NO_DEVICES,
    }
}

/// Opens the path that the run mounts on, and creates missing components.
pub(crate) fn open_mount_target(path: &str, kind: BindKind) -> io::Result<OwnedFd> {
    let root = openat(CWD, "/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    open_target(root.as_fd(), path, kind)
}

/// Mounts on a directory of the template. A link in the path is no danger: the spawner created every link of the
/// template.
fn attach_at(mount: BorrowedFd<'_>, path: &str) -> io::Result<()> {
    let target = openat(
        CWD,
        path,
        OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW,
        Mode::empty(),
    )?;
    mount::attach(mount, target.as_fd())
}
