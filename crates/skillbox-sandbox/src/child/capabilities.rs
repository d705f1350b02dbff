//! Capability sets and securebits.

use std::io;

use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_capabilities_secure_bits,
};

/// Empties the bounding set, which limits the capabilities that an exec can gain. The process keeps its own
/// capabilities, because it still has to mount.
pub(super) fn empty_bounding_set() -> io::Result<()> {
    for bit in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        match remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // The kernel does not know this capability, so the previous one was the last.
            Err(rustix::io::Errno::INVAL) if bit > 0 => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Empties the ambient, effective, permitted and inheritable sets, and locks the securebits.
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
