//! Mounts that show one owner's files as the script's.
//!
//! A file that only its owner may read, such as a private input of mode 0600, is of no use to a script that runs as
//! another user. An idmapped mount shows it with the script's ids, without a copy and without touching the original.
//! Its map is that of a user namespace, which is made once per owner and has no process in it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, fstat, openat};
use rustix::process::{Pid, Signal, kill_process};

use super::process::clone_single_threaded;
use crate::kernel::clone::Cloned;
use crate::kernel::mount;
use crate::kernel::wait::{Patience, reap};
use crate::plan::Ids;

/// As many owners as inputs usually have; the oldest makes room.
const KEPT: usize = 16;

/// User namespaces by the owner that they map to the script.
#[derive(Default)]
pub(super) struct OwnerMaps {
    list: Vec<(Ids, OwnedFd)>,
}

impl OwnerMaps {
    /// Shows the files of a detached mount that belong to the owner of its root as the script's.
    pub fn apply(&mut self, proc: BorrowedFd<'_>, mount: BorrowedFd<'_>, script: Ids) -> io::Result<()> {
        let stat = fstat(mount)?;
        let owner = Ids {
            uid: stat.st_uid,
            gid: stat.st_gid,
        };
        if owner == script {
            return Ok(());
        }
        if !self.list.iter().any(|(known, _)| *known == owner) {
            if self.list.len() == KEPT {
                self.list.remove(0);
            }
            self.list.push((owner, user_namespace(proc, owner, script)?));
        }
        let (_, namespace) = self
            .list
            .iter()
            .find(|(known, _)| *known == owner)
            .ok_or(io::ErrorKind::NotFound)?;
        mount::map_owners(mount, namespace.as_fd())
    }
}

/// A user namespace that maps one id of files to one of the host.
fn user_namespace(proc: BorrowedFd<'_>, from: Ids, to: Ids) -> io::Result<OwnedFd> {
    match clone_single_threaded(libc::CLONE_NEWUSER as u64, None)? {
        Cloned::Child => loop {
            // Nothing but a holder: it waits to be killed, which also happens when the spawner dies.
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
            rustix::event::pause();
        },
        Cloned::Parent { pid, .. } => {
            let made = describe(proc, pid, from, to);
            if let Some(holder) = Pid::from_raw(pid) {
                let _ = kill_process(holder, Signal::KILL);
            }
            let _ = reap(Some(pid), Patience::Wait);
            made
        }
    }
}

fn describe(proc: BorrowedFd<'_>, pid: i32, from: Ids, to: Ids) -> io::Result<OwnedFd> {
    let write = |name: &str, inside: u32, outside: u32| -> io::Result<()> {
        let file = openat(
            proc,
            format!("{pid}/{name}"),
            OFlags::WRONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        rustix::io::write(&file, format!("{inside} {outside} 1").as_bytes())?;
        Ok(())
    };
    write("uid_map", from.uid, to.uid)?;
    write("gid_map", from.gid, to.gid)?;
    Ok(openat(
        proc,
        format!("{pid}/ns/user"),
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}
