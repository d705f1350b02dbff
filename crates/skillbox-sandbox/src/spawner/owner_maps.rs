//! Idmapped mounts that show the files of one owner as the script's.
//!
//! A file that only its owner may read, such as a private input of mode 0600, is of no use to a script that runs as
//! another user. An idmapped mount shows it with the script's ids, without a copy and without a change of the original.
//! Its map is that of a user namespace, which is created once per owner and contains no process.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, fstat, openat};
use rustix::process::{Pid, Signal, kill_process};

use super::single_thread::clone_spawner;
use crate::host::Ids;
use crate::kernel::clone::CloneResult;
use crate::kernel::mount;
use crate::kernel::wait::{WaitMode, reap};

/// The number of cached owners: more than inputs usually have. The oldest is removed first.
const CACHE_CAPACITY: usize = 16;

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

/// Creates a user namespace that maps one owner of files to one on the host.
fn create_user_namespace(proc: BorrowedFd<'_>, from: Ids, to: Ids) -> io::Result<OwnedFd> {
    match clone_spawner(libc::CLONE_NEWUSER as u64, None)? {
        CloneResult::Child => loop {
            // This process only holds the namespace. The spawner kills it, or the kernel when the spawner dies.
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
            rustix::event::pause();
        },
        CloneResult::Parent { pid, .. } => {
            let namespace = map_and_open(proc, pid, from, to);
            if let Some(holder) = Pid::from_raw(pid) {
                kill_process(holder, Signal::KILL)?;
            }
            reap(Some(pid), WaitMode::Block)?;
            namespace
        }
    }
}

fn map_and_open(proc: BorrowedFd<'_>, pid: i32, from: Ids, to: Ids) -> io::Result<OwnedFd> {
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
