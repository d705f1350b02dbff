//! Removes the groups of dead processes.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, unlinkat};
use rustix::process::{Pid, Signal, kill_process};

use super::control_file::read_control_file;

const NAME_PREFIX: &str = "skillbox";

/// The process that created a group. The name of the group encodes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct GroupOwner {
    /// The inode number of its pid namespace.
    pid_namespace: u64,
    pid: i32,
    /// In clock ticks since boot. It distinguishes the owner from a later process with the same pid.
    start_time: u64,
}

/// The prefix for the names of the groups that this process creates.
pub(super) fn own_group_prefix() -> io::Result<String> {
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    let start_time = process_start_time(pid).ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?;
    Ok(format!("{NAME_PREFIX}-{}-{pid}-{start_time}", own_pid_namespace()?))
}

/// The inode number of this process's pid namespace. Groups of another pid namespace are left alone: their owners have
/// no pid here and would look dead.
fn own_pid_namespace() -> io::Result<u64> {
    Ok(rustix::fs::stat("/proc/self/ns/pid")?.st_ino)
}

/// The start time of a process, in clock ticks since boot; `None` for a dead process, reaped or not.
fn process_start_time(pid: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the process name in parentheses, which can itself contain spaces and parentheses.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// Removes the groups below a base directory whose owner is dead, after killing the processes in them.
pub(super) fn remove_stale_groups(base: &OwnedFd, path: &Path) {
    let (Ok(entries), Ok(pid_namespace)) = (std::fs::read_dir(path), own_pid_namespace()) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let is_stale = parse_owner(name).is_some_and(|owner| {
            owner.pid_namespace == pid_namespace && process_start_time(owner.pid) != Some(owner.start_time)
        });
        if is_stale {
            kill_and_remove(base, name);
        }
    }
}

fn kill_and_remove(base: &OwnedFd, name: &str) {
    let members = read_control_file(base.as_fd(), &format!("{name}/cgroup.procs")).unwrap_or_default();
    for pid in members
        .lines()
        .filter_map(|pid| pid.parse().ok())
        .filter_map(Pid::from_raw)
    {
        let _ = kill_process(pid, Signal::KILL);
    }
    // A killed process takes a moment to leave the group.
    for _ in 0..20 {
        match unlinkat(base, name, AtFlags::REMOVEDIR) {
            Err(rustix::io::Errno::BUSY) => std::thread::sleep(std::time::Duration::from_millis(1)),
            _ => break,
        }
    }
}

/// The owner that the name of a group encodes.
fn parse_owner(name: &str) -> Option<GroupOwner> {
    let mut parts = name.strip_prefix(NAME_PREFIX)?.strip_prefix('-')?.split('-');
    Some(GroupOwner {
        pid_namespace: parts.next()?.parse().ok()?,
        pid: parts.next()?.parse().ok()?,
        start_time: parts.next()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_encodes_the_owner() {
        let prefix = own_group_prefix().unwrap();
        let owner = parse_owner(&format!("{prefix}-7")).unwrap();
        assert_eq!(owner.pid_namespace, own_pid_namespace().unwrap());
        assert_eq!(owner.pid, i32::try_from(std::process::id()).unwrap());
        assert_eq!(process_start_time(owner.pid), Some(owner.start_time));
        assert_eq!(parse_owner("docker-12"), None);
        assert_eq!(parse_owner("skillbox-x-1-2"), None);
    }

    #[test]
    fn only_groups_of_dead_owners_are_removed() {
        let base = tempfile::tempdir().unwrap();
        let own = format!("{}-1", own_group_prefix().unwrap());
        let pid_namespace = own_pid_namespace().unwrap();
        let dead = format!("skillbox-{pid_namespace}-1-1-1");
        let other_namespace = format!("skillbox-{}-1-1-1", pid_namespace + 1);
        for name in [own.as_str(), &dead, &other_namespace, "other"] {
            std::fs::create_dir(base.path().join(name)).unwrap();
        }
        let directory = std::fs::File::open(base.path()).unwrap().into();
        remove_stale_groups(&directory, base.path());
        let mut remaining: Vec<_> = std::fs::read_dir(base.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        remaining.sort();
        let mut expected = ["other", own.as_str(), &other_namespace];
        expected.sort_unstable();
        assert_eq!(remaining, expected);
    }
}
