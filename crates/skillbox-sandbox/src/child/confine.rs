//! Resource limits, capabilities, and the two switches that cannot be turned back.

use std::io;

use rustix::process::{DumpableBehavior, Rlimit, getrlimit, set_dumpable_behavior, setrlimit};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_capabilities_secure_bits, set_no_new_privs,
};

use crate::plan::{Resource, ResourceLimit};

pub(super) fn limit_resources(limits: &[ResourceLimit]) -> io::Result<()> {
    for ResourceLimit { resource, limit } in limits {
        let kernel = resource.kernel();
        let hard = match resource {
            // A second between the signal that says why and the one that cannot be caught.
            Resource::Cpu => limit
                .saturating_add(1)
                .min(getrlimit(kernel).maximum.unwrap_or(u64::MAX)),
            _ => *limit,
        };
        setrlimit(
            kernel,
            Rlimit {
                current: Some(*limit),
                maximum: Some(hard),
            },
        )?;
    }
    Ok(())
}

/// What exec could give; what this process has stays for the mounts that are still to come.
pub(super) fn empty_bounding_set() -> io::Result<()> {
    for bit in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        match remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // Past the last capability that this kernel knows.
            Err(rustix::io::Errno::INVAL) if bit > 0 => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Empties every other set; the bounding set is empty already.
pub(super) fn drop_capabilities() -> io::Result<()> {
    clear_ambient_capability_set()?;
    set_capabilities_secure_bits(
        CapabilitiesSecureBits::NO_ROOT
            | CapabilitiesSecureBits::NO_ROOT_LOCKED
            | CapabilitiesSecureBits::NO_SETUID_FIXUP
            | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
            | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED,
    )?;
    let none = CapabilitySet::empty();
    Ok(set_capabilities(
        None,
        CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        },
    )?)
}

pub(super) fn undumpable() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

pub(super) fn no_new_privileges() -> io::Result<()> {
    Ok(set_no_new_privs(true)?)
}
