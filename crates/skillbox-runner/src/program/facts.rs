//! The facts about the container, seen from inside.

use std::fs;
use std::path::Path;

use rustix::fs::StatVfsMountFlags;
use rustix::process::Resource;
use skillbox_runner::{ContainerFacts, PROTOCOL};

use super::cgroup_files::CgroupFiles;
use super::workspace::WORKSPACE;

/// Reads the facts about this process and its container. A fact that cannot be read counts as missing isolation.
pub fn gather(cgroup: &CgroupFiles) -> ContainerFacts {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let mut lines = status.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| *key == name).map(|(_, value)| value.trim())
    };
    let is_empty = |name: &str| field(name).is_some_and(|set| set.chars().all(|digit| digit == '0'));
    // Only a workspace that is a file system of its own has limits of its own.
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
        interfaces: interface_count(),
        landlock_abi: skillbox_sandbox::container_init::landlock_abi(),
        memory_bytes: cgroup.memory_limit(),
        memory_and_swap_bytes: cgroup.memory_and_swap_limit(),
        pids: cgroup.pids_limit(),
        has_cpu_time: cgroup.cpu_time().is_some(),
        open_files: rustix::process::getrlimit(Resource::Nofile).maximum,
    }
}

fn is_mount_point(path: &str) -> bool {
    let device = |path: &Path| rustix::fs::stat(path).ok().map(|stat| stat.st_dev);
    device(Path::new(path)) != device(Path::new("/"))
}

/// The number of interfaces other than loopback; the maximum when it cannot be read, so that it never looks isolated.
fn interface_count() -> u32 {
    let Ok(text) = fs::read_to_string("/proc/net/dev") else {
        return u32::MAX;
    };
    let names = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, _)| name.trim());
    u32::try_from(names.filter(|name| *name != "lo").count()).unwrap_or(u32::MAX)
}
