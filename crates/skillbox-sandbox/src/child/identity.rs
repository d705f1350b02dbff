//! The session, the ids, the parent-death signal and the cgroup namespace of pid 1.
#![expect(unsafe_code, reason = "unshare(2) changes the whole process")]

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Gid, Signal, Uid, set_parent_process_death_signal};
use rustix::thread::{UnshareFlags, set_thread_res_gid, set_thread_res_uid, unshare_unsafe};

use crate::host::UidGid;

/// Starts a session without a terminal, and names the process.
pub(super) fn new_session() -> io::Result<()> {
    rustix::process::setsid()?;
    Ok(rustix::thread::set_name(c"skillbox-init")?)
}

pub(super) fn become_user(ids: UidGid) -> io::Result<()> {
    let (gid, uid) = (Gid::from_raw(ids.gid), Uid::from_raw(ids.uid));
    set_thread_res_gid(gid, gid, gid)?;
    Ok(set_thread_res_uid(uid, uid, uid)?)
}

/// Requests SIGKILL for the death of the spawner. Must follow [`become_user`], because a change of ids clears the
/// request. A spawner that died before the request causes no signal, and getppid(2) cannot show its death from another
/// pid namespace, so the child checks the spawner's pidfd.
pub(super) fn die_with_spawner(spawner: Option<&OwnedFd>) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let Some(spawner) = spawner else { return Ok(()) };
    let no_wait = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut [PollFd::new(spawner, PollFlags::IN)], Some(&no_wait))? {
        0 => Ok(()),
        _ => Err(io::Error::from_raw_os_error(libc::EOWNERDEAD)),
    }
}

/// Enters a cgroup namespace whose root is the control group of the run. The namespace of the clone has the spawner's
/// group as its root.
pub(super) fn unshare_cgroup_namespace() -> io::Result<()> {
    // SAFETY: no descriptor table is unshared.
    unsafe { unshare_unsafe(UnshareFlags::NEWCGROUP)? };
    Ok(())
}
