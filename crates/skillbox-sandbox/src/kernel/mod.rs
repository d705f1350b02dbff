//! Thin wrappers around system calls that no crate wraps, one file per facility. They make no decisions.

pub(crate) mod clone;
pub(crate) mod loopback;
pub(crate) mod mount;
mod mount_attributes;
pub(crate) mod pseudo_file;
mod remount;
pub(crate) mod socket;
pub(crate) mod spawn;
pub(crate) mod wait;
