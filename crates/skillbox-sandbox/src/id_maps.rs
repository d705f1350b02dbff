//! The id maps of a new user namespace.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{Mode, OFlags, openat};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use crate::host::Ids;

/// Writes the maps of this process's new user namespace: one user, one group, and no supplementary groups.
pub(crate) fn write_id_maps(proc: BorrowedFd<'_>, inside: Ids, outside: Ids) -> io::Result<()> {
    // Whatever the descriptor leads to, only files of the kernel get the maps.
    if rustix::fs::fstatfs(proc)?.f_type != libc::PROC_SUPER_MAGIC {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    // The /proc files of an undumpable process belong to root, which has no id in the new namespace.
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
