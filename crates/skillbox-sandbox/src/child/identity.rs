//! Session, ids, and the tie to the spawner.
#![expect(unsafe_code, reason = "unshare(2) changes the whole process")]

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Gid, Signal, Uid, set_parent_process_death_signal};
use rustix::thread::{UnshareFlags, set_thread_res_gid, set_thread_res_uid, unshare_unsafe};

use crate::plan::Ids;

pub(super) fn new_session() -> io::Result<()> {
    rustix::process::setsid()?;
    Ok(rustix::thread::set_name(c"skillbox-init")?)
}

pub(super) fn become_user(ids: Ids) -> io::Result<()> {
    let (gid, uid) = (Gid::from_raw(ids.gid), Uid::from_raw(ids.uid));
    set_thread_res_gid(gid, gid, gid)?;
    Ok(set_thread_res_uid(uid, uid, uid)?)
}

/// Changing ids forgets the signal, so this comes after them. A spawner that died before the signal was asked for sends
/// none, and its pid means nothing in here: its own descriptor tells.
pub(super) fn die_with_parent(spawner: Option<&OwnedFd>) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let Some(spawner) = spawner else { return Ok(()) };
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut [PollFd::new(spawner, PollFlags::IN)], Some(&now))? {
        0 => Ok(()),
        _ => Err(io::Error::from_raw_os_error(libc::EOWNERDEAD)),
    }
}

/// The namespace that came with the clone has the spawner's group as its root; this one has the run's own.
pub(super) fn root_cgroup_namespace() -> io::Result<()> {
    // SAFETY: no descriptor table is unshared.
    unsafe { unshare_unsafe(UnshareFlags::NEWCGROUP)? };
    Ok(())
}
