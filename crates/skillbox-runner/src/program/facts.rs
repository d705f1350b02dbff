//! Gathers facts about the container from inside.

use std::fs;
use std::path::Path;

use rustix::fs::StatVfsMountFlags;
use rustix::process::Resource;
use skillbox_runner::{ContainerFacts, PROTOCOL_VERSION};

use super::cgroup_files::CgroupFiles;
use super::workspace::WORKSPACE;

/// Reads the facts about this process and its container. A fact that cannot be read counts as missing isolation.
pub fn gather_container_facts(cgroup: &CgroupFiles) -> ContainerFacts {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let mut lines = status.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| *key == name).map(|(_, value)| value.trim())
    };
    let is_empty = |name: &str| field(name).is_some_and(|set| set.chars().all(|digit| digit == '0'));
    // Only a workspace with its own file system has its own limits.
    let space = rustix::fs::statvfs(WORKSPACE)
        .ok()
        .filter(|_| is_mount_point(WORKSPACE));
    ContainerFacts {
        protocol: PROTOCOL_VERSION,
        pid: std::process::id(),
        uid: rustix::process::geteuid().as_raw(),
        has_seccomp_filter: field("Seccomp") == Some("2"),
        no_new_privileges: field("NoNewPrivs") == Some("1"),
        no_capabilities: ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]
            .iter()
            .all(|set| is_empty(set)),
        read_only_root: rustix::fs::statvfs("/").is_ok_and(|root| root.f_flag.contains(StatVfsMountFlags::RDONLY)),
        workspace_bytes: space
            .as_ref()
            .map_or(0, |space| space.f_blocks.saturating_mul(space.f_frsize)),
        workspace_inodes: space.as_ref().map_or(0, |space| space.f_files),
        network_interfaces: interface_count(),
        landlock_abi: skillbox_sandbox::container_init::landlock_abi(),
        memory_limit_bytes: cgroup.memory_limit(),
        memory_and_swap_limit_bytes: cgroup.memory_and_swap_limit(),
        process_limit: cgroup.pids_limit(),
        counts_cpu_time: cgroup.cpu_time().is_some(),
        open_file_limit: rustix::process::getrlimit(Resource::Nofile).maximum,
    }
}

fn is_mount_point(path: &str) -> bool {
    let device = |path: &Path| rustix::fs::stat(path).ok().map(|stat| stat.st_dev);
    device(Path::new(path)) != device(Path::new("/"))
}

/// The number of interfaces other than loopback. If it cannot be read, the maximum, so that the container does not seem
/// isolated.
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
