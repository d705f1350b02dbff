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
    Ok(format!("{MARK}-{pid}-{started}"))
}

/// The time a process was started, in the kernel's ticks.
fn start_time(pid: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses can hold anything, blanks and parentheses too.
    stat.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()
}

/// Removes the groups below a base whose owner does not live any more, killing what is left in them.
pub(super) fn sweep(base: &OwnedFd, path: &Path) {
    let Ok(entries) = std::fs::read_dir(path) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if owner(name).is_some_and(|(pid, started)| start_time(pid) != Some(started)) {
            let inside = read_at(base.as_fd(), &format!("{name}/cgroup.procs")).unwrap_or_default();
            for pid in inside
                .lines()
                .filter_map(|pid| pid.parse().ok())
                .filter_map(Pid::from_raw)
            {
                let _ = kill_process(pid, Signal::KILL);
            }
            let _ = unlinkat(base, name, AtFlags::REMOVEDIR);
        }
    }
}

/// The owner that a group's name tells.
fn owner(name: &str) -> Option<(i32, u64)> {
    let mut parts = name.strip_prefix(MARK)?.strip_prefix('-')?.split('-');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_tells_the_owner() {
        let own = own_prefix().unwrap();
        let (pid, started) = owner(&format!("{own}-7")).unwrap();
        assert_eq!(pid, i32::try_from(std::process::id()).unwrap());
        assert_eq!(start_time(pid), Some(started));
        assert_eq!(owner("docker-12"), None);
        assert_eq!(owner("skillbox-x-1-2"), None);
    }

    #[test]
    fn only_groups_of_the_dead_are_removed() {
        let base = tempfile::tempdir().unwrap();
        let own = format!("{}-1", own_prefix().unwrap());
        for name in [own.as_str(), "skillbox-1-1-1", "other"] {
            std::fs::create_dir(base.path().join(name)).unwrap();
        }
        let directory = std::fs::File::open(base.path()).unwrap().into();
        sweep(&directory, base.path());
        let mut left: Vec<_> = std::fs::read_dir(base.path())
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["other", own.as_str()]);
    }
}
