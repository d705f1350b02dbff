//! The filesystem in memory that holds a workspace.

use std::io;
use std::os::fd::OwnedFd;

use crate::kernel::mount::{self, FsOption, NO_DEVICES, NO_SUID};
use crate::plan::Ids;

/// An empty filesystem of its own with hard limits, detached, whose root belongs to the script.
pub(crate) fn new_workspace(bytes: u64, inodes: u64, owner: Ids) -> io::Result<OwnedFd> {
    let options = [
        FsOption("size", &bytes.to_string()),
        FsOption("nr_inodes", &inodes.to_string()),
        FsOption("mode", "0755"),
        FsOption("uid", &owner.uid.to_string()),
        FsOption("gid", &owner.gid.to_string()),
    ];
    mount::new_filesystem("tmpfs", &options, NO_SUID | NO_DEVICES)
}
