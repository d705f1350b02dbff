//! The filesystem in memory of a workspace.

use std::io;
use std::os::fd::OwnedFd;

use crate::host::Ids;
use crate::kernel::mount::{self, FsOption, NO_DEVICES, NO_SUID};

/// Creates an empty, detached filesystem with hard limits, whose root belongs to the script.
pub(crate) fn create_workspace_filesystem(bytes: u64, inodes: u64, owner: Ids) -> io::Result<OwnedFd> {
    let options = [
        FsOption("size", &bytes.to_string()),
        FsOption("nr_inodes", &inodes.to_string()),
        FsOption("mode", "0755"),
        FsOption("uid", &owner.uid.to_string()),
        FsOption("gid", &owner.gid.to_string()),
    ];
    mount::new_filesystem("tmpfs", &options, NO_SUID | NO_DEVICES)
}
