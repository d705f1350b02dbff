//! Thin wrappers around kernel interfaces that no crate wraps well enough, one file per interface.

pub(crate) mod clone;
mod lease;
pub(crate) mod listen;
pub(crate) mod loop_device;
pub(crate) mod loopback;
pub(crate) mod mount;
mod mount_attributes;
pub(crate) mod pseudo_file;
mod remount;
pub(crate) mod socket;
pub(crate) mod spawn;
pub(crate) mod wait;

pub use lease::has_open_writers;
