//! Session, ids, and the death together with the spawner.
#![expect(unsafe_code, reason = "unshare(2) changes the whole process")]

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Gid, Signal, Uid, set_parent_process_death_signal};
use rustix::thread::{UnshareFlags, set_thread_res_gid, set_thread_res_uid, unshare_unsafe};

use crate::host::Ids;

pub(super) fn new_session() -> io::Result<()> {
    rustix::process::setsid()?;
    Ok(rustix::thread::set_name(c"skillbox-init")?)
}

pub(super) fn become_user(ids: Ids) -> io::Result<()> {
    let (gid, uid) = (Gid::from_raw(ids.gid), Uid::from_raw(ids.uid));
    set_thread_res_gid(gid, gid, gid)?;
    Ok(set_thread_res_uid(uid, uid, uid)?)
}

/// Asks for SIGKILL when the spawner dies. A change of ids clears this request, so it follows the ids. A spawner that
/// died before the request sends no signal, and its pid has no meaning in the pid namespace of the child, so the child
/// checks the spawner's pidfd.
pub(super) fn die_with_spawner(spawner: Option<&OwnedFd>) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let Some(spawner) = spawner else { return Ok(()) };
    let no_wait = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut [PollFd::new(spawner, PollFlags::IN)], Some(&no_wait))? {
        0 => Ok(()),
        _ => Err(io::Error::from_raw_os_error(libc::EOWNERDEAD)),
    }
}

/// Makes the group of the run the root of the cgroup namespace. The namespace of the clone has the spawner's group as its
/// root.
pub(super) fn root_cgroup_namespace() -> io::Result<()> {
    // SAFETY: no descriptor table is unshared.
    unsafe { unshare_unsafe(UnshareFlags::NEWCGROUP)? };
    Ok(())
}
