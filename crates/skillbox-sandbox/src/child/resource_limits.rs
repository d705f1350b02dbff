//! Limits per process: setrlimit(2).

use std::io;

use rustix::process::{Rlimit, getrlimit, setrlimit};

use crate::host::Resource;
use crate::plan::ResourceLimit;

pub(super) fn set_resource_limits(limits: &[ResourceLimit]) -> io::Result<()> {
    for ResourceLimit { resource, limit } in limits {
        let hard = match resource {
            Resource::Cpu => cpu_hard_limit(*limit)?,
            _ => *limit,
        };
        setrlimit(
            resource.to_rlimit(),
            Rlimit {
                current: Some(*limit),
                maximum: Some(hard),
            },
        )?;
    }
    Ok(())
}

/// The hard limit of CPU time. At the soft limit the kernel sends SIGXCPU, and at the hard limit, one second later,
/// SIGKILL. A lower hard limit of the host is kept, because only root may raise it.
fn cpu_hard_limit(soft: u64) -> io::Result<u64> {
    let wanted = soft
        .checked_add(1)
        .ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
    Ok(match getrlimit(Resource::Cpu.to_rlimit()).maximum {
        Some(host) => wanted.min(host),
        None => wanted,
    })
}
