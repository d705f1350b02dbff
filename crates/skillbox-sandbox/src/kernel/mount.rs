//! mount_setattr(2), and the calls around it that make a mount from parts.
#![expect(unsafe_code, reason = "mount_setattr(2) takes a pointer to a structure")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create, fsconfig_set_string,
    fsmount, fsopen, move_mount, open_tree,
};

use super::remount;

pub(crate) const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;
pub(crate) const NO_SUID: u64 = libc::MOUNT_ATTR_NOSUID;
pub(crate) const NO_DEVICES: u64 = libc::MOUNT_ATTR_NODEV;
pub(crate) const NO_EXEC: u64 = libc::MOUNT_ATTR_NOEXEC;
/// Whether a call speaks of one mount or of everything below it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    One,
    Whole,
}

/// Sets attributes on a mount. Without mount_setattr(2) it must be attached.
pub(crate) fn set_attributes(mount: BorrowedFd<'_>, attributes: u64, depth: Depth) -> io::Result<()> {
    let request = libc::mount_attr {
        attr_set: attributes,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    match call_setattr(mount, &request, depth) {
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => remount::set_attributes(mount, attributes, depth),
        set => set,
    }
}

/// Shows the owner of a mount's files as someone else, by the maps of a user namespace.
pub(crate) fn map_owners(mount: BorrowedFd<'_>, user_namespace: BorrowedFd<'_>) -> io::Result<()> {
    let request = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_IDMAP,
        attr_clr: 0,
        propagation: 0,
        userns_fd: user_namespace.as_raw_fd() as u64,
    };
    call_setattr(mount, &request, Depth::One)
}

fn call_setattr(mount: BorrowedFd<'_>, request: &libc::mount_attr, depth: Depth) -> io::Result<()> {
    let flags = libc::AT_EMPTY_PATH | if depth == Depth::Whole { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the empty path is a C string, the request is as long as said, both outlive the call and are only read.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            std::ptr::from_ref(request),
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// An option of a filesystem, with its value.
pub(crate) struct FsOption<'a>(pub &'a str, pub &'a str);

/// A new, detached mount of a new filesystem.
pub(crate) fn new_filesystem(kind: &str, options: &[FsOption<'_>], attributes: u64) -> io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for FsOption(name, value) in options {
        fsconfig_set_string(context.as_fd(), *name, *value)?;
    }
    fsconfig_create(context.as_fd())?;
    let attributes = MountAttrFlags::from_bits_retain(u32::try_from(attributes).unwrap_or(0));
    Ok(fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// A detached copy of what is mounted at a path below a directory; an empty path is the descriptor itself.
pub(crate) fn copy_tree(directory: BorrowedFd<'_>, path: &str, depth: Depth) -> io::Result<OwnedFd> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_NO_AUTOMOUNT
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    if path.is_empty() {
        flags |= OpenTreeFlags::AT_EMPTY_PATH;
    }
    if depth == Depth::Whole {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    Ok(open_tree(directory, path, flags)?)
}

/// Attaches a detached mount to the thing that `target` is open on.
pub(crate) fn attach(mount: BorrowedFd<'_>, target: BorrowedFd<'_>) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(mount, "", target, "", flags)?)
}

/// How copies of the host's mounts are made, and when they get their attributes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copying {
    /// A host's mounts are locked together in a user namespace, and then copied only as a whole.
    pub depth: Depth,
    /// Kernels without mount_setattr(2) set attributes on attached mounts only.
    pub settled: Settled,
}

/// When a copy has its attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    BeforeItIsAttached,
    OnceItIsAttached,
}

impl Copying {
    /// A detached copy of the tree that a descriptor is open on.
    pub fn copy(self, source: BorrowedFd<'_>, attributes: u64) -> io::Result<OwnedFd> {
        let copy = copy_tree(source, "", self.depth)?;
        if self.settled == Settled::BeforeItIsAttached {
            set_attributes(copy.as_fd(), attributes, self.depth)?;
        }
        Ok(copy)
    }

    /// Attaches a copy to the thing that `target` is open on. Nothing but ours runs in its namespace yet.
    pub fn attach(self, copy: BorrowedFd<'_>, target: BorrowedFd<'_>, attributes: u64) -> io::Result<()> {
        attach(copy, target)?;
        if self.settled == Settled::OnceItIsAttached {
            set_attributes(copy, attributes, self.depth)?;
        }
        Ok(())
    }
}
