//! Creates the tmpfs of a workspace.

use std::io;
use std::os::fd::OwnedFd;

use crate::host::UidGid;
use crate::kernel::mount::{self, FsOption, NO_DEVICES, NO_SUID};

/// Creates an empty, detached tmpfs with hard limits. Its root directory belongs to `owner`.
pub(crate) fn create_workspace_tmpfs(bytes: u64, inodes: u64, owner: UidGid) -> io::Result<OwnedFd> {
    let options = [
        FsOption("size", &bytes.to_string()),
        FsOption("nr_inodes", &inodes.to_string()),
        FsOption("mode", "0755"),
        FsOption("uid", &owner.uid.to_string()),
        FsOption("gid", &owner.gid.to_string()),
    ];
    mount::new_filesystem("tmpfs", &options, NO_SUID | NO_DEVICES)
}
