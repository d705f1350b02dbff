//! Derives the facts about control groups that the planner needs.

use super::facts::{Availability, CgroupFacts};
use crate::cgroup::{CgroupLayout, CgroupUnavailable, CgroupVersion, Controller, DELEGATION_FIX};
use crate::kernel::pseudo_file;

/// The facts that follow from a discovered layout.
pub(crate) fn cgroup_facts(layout: &Result<CgroupLayout, CgroupUnavailable>) -> CgroupFacts {
    let layout = match layout {
        Ok(layout) => layout,
        Err(unavailable) => return CgroupFacts::unavailable(&unavailable.reason, &unavailable.fix),
    };
    let availability_of = |controller: Controller| match layout.bases.contains_key(&controller) {
        true => Availability::Available,
        false => Availability::missing(
            format!("the {} controller is not delegated to this process", controller.name()),
            DELEGATION_FIX,
        ),
    };
    CgroupFacts {
        version: Some(layout.version),
        memory: availability_of(Controller::Memory),
        swap: swap_accounting(layout),
        pids: availability_of(Controller::Pids),
        cpu_quota: availability_of(Controller::Cpu),
        cpu_time: availability_of(Controller::CpuAccounting),
    }
}

/// Available if the memory limit of a group includes swap, or if the host uses no swap.
fn swap_accounting(layout: &CgroupLayout) -> Availability {
    let Some(base) = layout.bases.get(&Controller::Memory) else {
        return Availability::Available;
    };
    let is_accounted = match layout.version {
        CgroupVersion::V1 => base.join("memory.memsw.limit_in_bytes").exists(),
        CgroupVersion::V2 => true,
    };
    // A kernel without swap support has no such file. The first line is a heading.
    let swaps = pseudo_file::read("/proc/swaps").unwrap_or_default();
    if is_accounted || swaps.lines().count() <= 1 {
        return Availability::Available;
    }
    Availability::missing(
        "swap is in use and the kernel does not account it",
        "boot with `swapaccount=1`, or turn swap off",
    )
}
