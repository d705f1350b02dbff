//! Limits per process, by setrlimit(2).

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

/// One second after the soft limit, which sends SIGXCPU, the hard limit sends SIGKILL. A hard limit of the host that is
/// lower stays in force, because nobody but root may raise it.
fn cpu_hard_limit(soft: u64) -> io::Result<u64> {
    let wanted = soft
        .checked_add(1)
        .ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
    Ok(match getrlimit(Resource::Cpu.to_rlimit()).maximum {
        Some(host) => wanted.min(host),
        None => wanted,
    })
}
