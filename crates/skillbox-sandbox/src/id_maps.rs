//! The id maps of a new user namespace.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{Mode, OFlags, openat};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use crate::host::UidGid;

/// Writes the id maps of this process, which has just entered a new user namespace: one user and one group.
/// setgroups(2) is denied.
pub(crate) fn write_id_maps(proc: BorrowedFd<'_>, inside: UidGid, outside: UidGid) -> io::Result<()> {
    // Refuses to write to anything but a real procfs.
    if rustix::fs::fstatfs(proc)?.f_type != libc::PROC_SUPER_MAGIC {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    // The /proc files of an undumpable process belong to root, which the new namespace does not map.
    set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    let written = (|| {
        write_file(proc, "self/setgroups", "deny")?;
        write_file(proc, "self/uid_map", &format!("{} {} 1", inside.uid, outside.uid))?;
        write_file(proc, "self/gid_map", &format!("{} {} 1", inside.gid, outside.gid))
    })();
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    written
}

fn write_file(directory: BorrowedFd<'_>, name: &str, content: &str) -> io::Result<()> {
    let file = openat(
        directory,
        name,
        OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW,
        Mode::empty(),
    )?;
    rustix::io::write(&file, content.as_bytes())?;
    Ok(())
}
