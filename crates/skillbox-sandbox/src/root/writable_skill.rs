//! Makes a mounted skill writable for the script, without changing what was mounted.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use super::overlay::mount_overlay;
use super::sandbox_mounts::open_mount_target;
use super::skill_copy::{copy_skill, remove_copy};
use crate::kernel::mount::{self, MountScope};
use crate::plan::{BindKind, CopyMethod};

/// Covers the skill at `target` with a view that the script may write to. `layers` is the directory of the workspace
/// that holds the changes in the directory `name`, which is empty or has the changes of an earlier run.
///
/// If the kernel refuses an overlay, the skill is copied instead. The first error of both is returned.
pub(crate) fn make_skill_writable(
    layers: BorrowedFd<'_>,
    target: &str,
    name: &str,
    method: CopyMethod,
    max_copy_bytes: u64,
) -> io::Result<()> {
    let overlay_error = match method {
        CopyMethod::Overlay => match mount_overlay(layers, target, name) {
            Ok(()) => return Ok(()),
            Err(error) => Some(error),
        },
        CopyMethod::Copy => None,
    };
    mount_copy(layers, target, name, max_copy_bytes).map_err(|error| overlay_error.unwrap_or(error))
}

fn mount_copy(layers: BorrowedFd<'_>, target: &str, name: &str, max_bytes: u64) -> io::Result<()> {
    let skill = open_mount_target(target, BindKind::Directory)?;
    if let Err(error) = copy_skill(skill.as_fd(), layers, name, max_bytes) {
        // An incomplete copy would only take space. If it cannot be removed, it counts as used.
        let _not_removed = remove_copy(layers, name);
        return Err(error);
    }
    let copy = mount::clone_tree(layers, name, MountScope::Single)?;
    // The clone has nosuid and nodev, as the workspace has.
    mount::attach(copy.as_fd(), skill.as_fd())
}
