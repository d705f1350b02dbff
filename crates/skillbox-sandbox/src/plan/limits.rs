//! Plans the limits of the control group and of each process.

use skillbox_model::{Layer, Limits};

use super::op::ResourceLimit;
use crate::cgroup::CgroupLimits;
use crate::host::{HostFacts, Resource};
use crate::profile::{Need, Profile};

/// The limits of the run's control group; `None` if no group is needed or available.
pub(super) fn cgroup_limits(
    profile: &Profile,
    limits: &Limits,
    facts: &HostFacts,
    is_enforced: &impl Fn(Layer) -> bool,
) -> Option<CgroupLimits> {
    let version = facts.cgroup.version?;
    let memory = (is_enforced(Layer::Memory) && facts.cgroup.memory.is_available()).then(|| limits.memory.bytes());
    let pids = (is_enforced(Layer::Pids) && facts.cgroup.pids.is_available()).then_some(limits.pids);
    let cpu_quota_millis = limits
        .cpu_quota_millis
        .filter(|_| is_enforced(Layer::Cpu) && facts.cgroup.cpu_quota.is_available());
    let count_cpu = profile.need(Layer::Cpu) != Need::Off && facts.cgroup.cpu_time.is_available();
    let is_needed = memory.is_some() || pids.is_some() || cpu_quota_millis.is_some() || count_cpu;
    is_needed.then_some(CgroupLimits {
        version,
        memory,
        pids,
        cpu_quota_millis,
        count_cpu,
    })
}

/// The limits of each process. None is above the caller's own hard limit, which cannot be raised.
pub(super) fn resource_limits(limits: &Limits, facts: &HostFacts, limits_processes: bool) -> Vec<ResourceLimit> {
    let mut list = vec![
        // A limit of 1 also keeps the kernel from starting a core dump handler behind a pipe; 0 does not (core(5)).
        (Resource::Core, 1),
        // The server ends the whole run at its CPU limit, which is lower. If the server fails to, the kernel kills each
        // process that has used this much CPU time.
        (Resource::Cpu, limits.cpu.as_secs().saturating_add(1)),
        (Resource::FileSize, limits.file.bytes()),
        // The kernel's defaults for locked memory (since Linux 5.16) and message queues.
        (Resource::LockedMemory, 8 << 20),
        (Resource::MessageQueue, 800 << 10),
        (Resource::Nice, 0),
        (Resource::OpenFiles, limits.open_files),
        (Resource::RealTimePriority, 0),
        (Resource::PendingSignals, 1024),
    ];
    if limits_processes {
        // The reaper counts as one process. A control group reports a refused fork and a resource limit does not, so
        // the resource limit has a margin with which the group refuses first.
        let margin = if facts.cgroup.pids.is_available() { 16 } else { 0 };
        list.push((Resource::Processes, limits.pids.saturating_add(1 + margin)));
    }
    let within_hard_limit = |(resource, limit): (Resource, u64)| ResourceLimit {
        resource,
        limit: facts.hard_limits.get(&resource).map_or(limit, |hard| limit.min(*hard)),
    };
    list.into_iter().map(within_hard_limit).collect()
}
