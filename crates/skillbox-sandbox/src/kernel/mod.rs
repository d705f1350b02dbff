//! Thin wrappers around system calls that no crate wraps, one file per facility. Decisions live elsewhere.

pub(crate) mod clone;
pub(crate) mod loopback;
pub(crate) mod made_up;
pub(crate) mod mount;
mod remount;
pub(crate) mod socket;
pub(crate) mod spawn;
pub(crate) mod wait;
