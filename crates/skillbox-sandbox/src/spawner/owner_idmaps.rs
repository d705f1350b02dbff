//! Idmapped mounts that show the files of an owner as files of the script.
//!
//! A script that runs as another user cannot read a file that only its owner may read, such as an input of mode 0600.
//! An idmapped mount shows the file with the script's ids; the file is neither copied nor changed. The kernel takes the
//! id map from a user namespace. The spawner creates one for each owner; it contains no process.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, fstat, openat};
use rustix::process::{Pid, Signal, kill_process};

use super::clone_spawner::clone_spawner;
use crate::host::UidGid;
use crate::kernel::clone::CloneResult;
use crate::kernel::mount;
use crate::kernel::wait::{WaitMode, reap};

/// The maximum number of cached owners: more than inputs usually have. The oldest is removed first.
const CACHE_CAPACITY: usize = 16;

/// A cache of user namespaces, by the owner whose ids they map to those of the script.
#[derive(Default)]
pub(super) struct OwnerIdmaps {
    list: Vec<(UidGid, OwnedFd)>,
}

impl OwnerIdmaps {
    /// Makes a detached mount show the files of its root's owner as files of the script.
    pub fn apply(&mut self, proc: BorrowedFd<'_>, mount: BorrowedFd<'_>, script: UidGid) -> io::Result<()> {
        let stat = fstat(mount)?;
        let owner = UidGid {
            uid: stat.st_uid,
            gid: stat.st_gid,
        };
        if owner == script {
            return Ok(());
        }
        if !self.list.iter().any(|(cached, _)| *cached == owner) {
            if self.list.len() == CACHE_CAPACITY {
                self.list.remove(0);
            }
            self.list.push((owner, create_user_namespace(proc, owner, script)?));
        }
        let (_, namespace) = self
            .list
            .iter()
            .find(|(cached, _)| *cached == owner)
            .ok_or(io::ErrorKind::NotFound)?;
        mount::set_id_map(mount, namespace.as_fd())
    }
}

/// Creates a user namespace that maps the ids `from` to the ids `to`.
fn create_user_namespace(proc: BorrowedFd<'_>, from: UidGid, to: UidGid) -> io::Result<OwnedFd> {
    match clone_spawner(libc::CLONE_NEWUSER as u64, None)? {
        CloneResult::Child => loop {
            // This process only keeps the namespace alive. The spawner kills it, or the kernel does if the spawner
            // dies.
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
            rustix::event::pause();
        },
        CloneResult::Parent { pid, .. } => {
            let namespace = write_maps_and_open(proc, pid, from, to);
            if let Some(holder) = Pid::from_raw(pid) {
                kill_process(holder, Signal::KILL)?;
            }
            reap(Some(pid), WaitMode::Block)?;
            namespace
        }
    }
}

fn write_maps_and_open(proc: BorrowedFd<'_>, pid: i32, from: UidGid, to: UidGid) -> io::Result<OwnedFd> {
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
