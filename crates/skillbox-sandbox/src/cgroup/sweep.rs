//! Groups whose owner is dead.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, unlinkat};
use rustix::process::{Pid, Signal, kill_process};

use super::group::read_at;

const MARK: &str = "skillbox";

/// The beginning of the names of our own groups: who we are, and since when, so that a reused pid is no alibi.
pub(super) fn own_prefix() -> io::Result<String> {
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    let started = start_time(pid).ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?;
    Ok(format!("{MARK}-{}-{pid}-{started}", pid_namespace()?))
}

/// The pid namespace that we count pids in. Groups of another one are not ours to judge: their owners have no names
/// here, and would look dead.
fn pid_namespace() -> io::Result<u64> {
    Ok(rustix::fs::stat("/proc/self/ns/pid")?.st_ino)
}

/// The time a process was started, in the kernel's ticks; none for one that is dead, reaped or not.
fn start_time(pid: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses can hold anything, blanks and parentheses too.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// Removes the groups below a base whose owner does not live any more, killing what is left in them.
pub(super) fn sweep(base: &OwnedFd, path: &Path) {
    let (Ok(entries), Ok(here)) = (std::fs::read_dir(path), pid_namespace()) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if owner(name).is_some_and(|(namespace, pid, started)| namespace == here && start_time(pid) != Some(started)) {
            let inside = read_at(base.as_fd(), &format!("{name}/cgroup.procs")).unwrap_or_default();
            for pid in inside
                .lines()
                .filter_map(|pid| pid.parse().ok())
                .filter_map(Pid::from_raw)
            {
                let _ = kill_process(pid, Signal::KILL);
            }
            // What was just killed takes a moment to leave.
            for _ in 0..20 {
                match unlinkat(base, name, AtFlags::REMOVEDIR) {
                    Err(rustix::io::Errno::BUSY) => std::thread::sleep(std::time::Duration::from_millis(1)),
                    _ => break,
                }
            }
        }
    }
}

/// The owner that a group's name tells.
fn owner(name: &str) -> Option<(u64, i32, u64)> {
    let mut parts = name.strip_prefix(MARK)?.strip_prefix('-')?.split('-');
    let namespace = parts.next()?.parse().ok()?;
    Some((namespace, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_tells_the_owner() {
        let own = own_prefix().unwrap();
        let (namespace, pid, started) = owner(&format!("{own}-7")).unwrap();
        assert_eq!(namespace, pid_namespace().unwrap());
        assert_eq!(pid, i32::try_from(std::process::id()).unwrap());
        assert_eq!(start_time(pid), Some(started));
        assert_eq!(owner("docker-12"), None);
        assert_eq!(owner("skillbox-x-1-2"), None);
    }

    #[test]
    fn only_groups_of_the_dead_are_removed() {
        let base = tempfile::tempdir().unwrap();
        let own = format!("{}-1", own_prefix().unwrap());
        let here = pid_namespace().unwrap();
        let dead = format!("skillbox-{here}-1-1-1");
        let elsewhere = format!("skillbox-{}-1-1-1", here + 1);
        for name in [own.as_str(), &dead, &elsewhere, "other"] {
            std::fs::create_dir(base.path().join(name)).unwrap();
        }
        let directory = std::fs::File::open(base.path()).unwrap().into();
        sweep(&directory, base.path());
        let mut left: Vec<_> = std::fs::read_dir(base.path())
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        left.sort();
        let mut expected = ["other", own.as_str(), &elsewhere];
        expected.sort_unstable();
        assert_eq!(left, expected);
    }
}
