//! The attributes of a mount, and the mounts that a change applies to.

use rustix::mount::MountAttrFlags;

pub(crate) const READ_ONLY: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_RDONLY;
pub(crate) const NO_SUID: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID;
pub(crate) const NO_DEVICES: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NODEV;
pub(crate) const NO_EXEC: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOEXEC;

/// Whether a call applies to one mount or also to every mount below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MountScope {
    Single,
    Recursive,
}
