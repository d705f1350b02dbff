//! What the container really is, seen from inside.

use std::fs;
use std::path::Path;

use rustix::fs::StatVfsMountFlags;
use rustix::process::Resource;
use skillbox_runner::{ContainerFacts, PROTOCOL};

use super::conversation::WORKSPACE;
use super::meters::Meters;

/// Looks around.
pub fn gather(meters: &Meters) -> ContainerFacts {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let mut lines = status.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| *key == name).map(|(_, value)| value.trim())
    };
    let is_empty = |name: &str| field(name).is_some_and(|set| set.chars().all(|digit| digit == '0'));
    // A workspace that is not a file system of its own has no limits of its own.
    let space = rustix::fs::statvfs(WORKSPACE)
        .ok()
        .filter(|_| is_mount_point(WORKSPACE));
    ContainerFacts {
        protocol: PROTOCOL,
        pid: std::process::id(),
        uid: rustix::process::geteuid().as_raw(),
        seccomp: field("Seccomp") == Some("2"),
        no_new_privileges: field("NoNewPrivs") == Some("1"),
        no_capabilities: ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]
            .iter()
            .all(|set| is_empty(set)),
        read_only_root: rustix::fs::statvfs("/").is_ok_and(|root| root.f_flag.contains(StatVfsMountFlags::RDONLY)),
        workspace_bytes: space
            .as_ref()
            .map_or(0, |space| space.f_blocks.saturating_mul(space.f_frsize)),
        workspace_inodes: space.as_ref().map_or(0, |space| space.f_files),
        interfaces: interfaces(),
        landlock_abi: skillbox_sandbox::container_init::landlock_abi(),
        memory_bytes: meters.memory_limit(),
        memory_and_swap_bytes: meters.memory_and_swap_limit(),
        pids: meters.pids_limit(),
        has_cpu_time: meters.cpu().is_some(),
        open_files: rustix::process::getrlimit(Resource::Nofile).maximum,
    }
}

fn is_mount_point(path: &str) -> bool {
    let device = |path: &Path| rustix::fs::stat(path).ok().map(|stat| stat.st_dev);
    device(Path::new(path)) != device(Path::new("/"))
}

/// Interfaces beside loopback; many when that cannot be told.
fn interfaces() -> u32 {
    let Ok(text) = fs::read_to_string("/proc/net/dev") else {
        return u32::MAX;
    };
    let names = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, _)| name.trim());
    u32::try_from(names.filter(|name| *name != "lo").count()).unwrap_or(u32::MAX)
}
