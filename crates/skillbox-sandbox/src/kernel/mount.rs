//! Mounts by descriptor: open_tree(2), fsopen(2), mount_setattr(2) and move_mount(2).
#![expect(unsafe_code, reason = "mount_setattr(2) takes a pointer to a structure")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

pub(crate) use rustix::mount::MountAttrFlags;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string,
    fsmount, fsopen, move_mount, open_tree,
};

pub(crate) use super::mount_attributes::{MountScope, NO_DEVICES, NO_EXEC, NO_SUID, READ_ONLY};
use super::remount;

/// Sets attributes on a mount. Kernels before 5.12 have no mount_setattr(2); there the mount must be attached.
pub(crate) fn set_attributes(mount: BorrowedFd<'_>, attributes: MountAttrFlags, scope: MountScope) -> io::Result<()> {
    let request = libc::mount_attr {
        attr_set: u64::from(attributes.bits()),
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    match mount_setattr(mount, &request, scope) {
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => remount::set_attributes(mount, attributes, scope),
        result => result,
    }
}

/// Turns a mount into an idmapped mount, which maps the owners of its files as the user namespace does.
pub(crate) fn set_id_map(mount: BorrowedFd<'_>, user_namespace: BorrowedFd<'_>) -> io::Result<()> {
    let request = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_IDMAP,
        attr_clr: 0,
        propagation: 0,
        userns_fd: user_namespace.as_raw_fd() as u64,
    };
    mount_setattr(mount, &request, MountScope::Single)
}

fn mount_setattr(mount: BorrowedFd<'_>, request: &libc::mount_attr, scope: MountScope) -> io::Result<()> {
    let flags = libc::AT_EMPTY_PATH
        | match scope {
            MountScope::Single => 0,
            MountScope::Recursive => libc::AT_RECURSIVE,
        };
    // SAFETY: the empty path is a C string, the size is that of the request, and both outlive the call, which only
    // reads them.
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

/// An option of a filesystem: its name and value.
pub(crate) struct FsOption<'a>(pub &'a str, pub &'a str);

/// Creates a filesystem and a detached mount of it.
pub(crate) fn new_filesystem(kind: &str, options: &[FsOption<'_>], attributes: MountAttrFlags) -> io::Result<OwnedFd> {
    new_filesystem_with_flags(kind, options, &[], attributes)
}

/// Like [`new_filesystem`], with options that have no value.
pub(crate) fn new_filesystem_with_flags(
    kind: &str,
    options: &[FsOption<'_>],
    flags: &[&str],
    attributes: MountAttrFlags,
) -> io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for flag in flags {
        fsconfig_set_flag(context.as_fd(), *flag)?;
    }
    for FsOption(name, value) in options {
        fsconfig_set_string(context.as_fd(), *name, *value)?;
    }
    fsconfig_create(context.as_fd())?;
    Ok(fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// Clones the mount at a path below a directory; the clone is detached. An empty path means the descriptor itself.
pub(crate) fn clone_tree(directory: BorrowedFd<'_>, path: &str, scope: MountScope) -> io::Result<OwnedFd> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_NO_AUTOMOUNT
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    if path.is_empty() {
        flags |= OpenTreeFlags::AT_EMPTY_PATH;
    }
    if scope == MountScope::Recursive {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    Ok(open_tree(directory, path, flags)?)
}

/// Attaches a detached mount to the file or directory that `target` is open on.
pub(crate) fn attach(mount: BorrowedFd<'_>, target: BorrowedFd<'_>) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(mount, "", target, "", flags)?)
}

/// Clones mounts of the host and attaches the clones, as the kernel and our privileges allow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MountCloner {
    /// In a user namespace the mounts of the host are locked together and can only be cloned recursively.
    pub scope: MountScope,
    pub attribute_timing: AttributeTiming,
}

/// When a clone gets its attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttributeTiming {
    BeforeAttach,
    /// Kernels without mount_setattr(2) set attributes on attached mounts only.
    AfterAttach,
}

impl MountCloner {
    /// Clones the tree that a descriptor is open on; the clone is detached.
    pub fn clone_tree(self, source: BorrowedFd<'_>, attributes: MountAttrFlags) -> io::Result<OwnedFd> {
        let clone = clone_tree(source, "", self.scope)?;
        if self.attribute_timing == AttributeTiming::BeforeAttach {
            set_attributes(clone.as_fd(), attributes, self.scope)?;
        }
        Ok(clone)
    }

    /// Attaches a clone to the file or directory that `target` is open on. The script must not run in the mount
    /// namespace yet, because the attributes (such as read-only) may be set only after the mount is attached.
    pub fn attach(self, clone: BorrowedFd<'_>, target: BorrowedFd<'_>, attributes: MountAttrFlags) -> io::Result<()> {
        attach(clone, target)?;
        if self.attribute_timing == AttributeTiming::AfterAttach {
            set_attributes(clone, attributes, self.scope)?;
        }
        Ok(())
    }
}
