//! Runs a job as a process of this host, in the kernel's sandbox.

mod certificates;
mod cleanup_worker;
mod disk_usage;
mod error;
mod executor;
mod host_paths;
mod network;
mod plan_cache;
mod probe_profile;
mod supervise;
mod writable_skill;

pub use error::LocalError;
pub use executor::{Launcher, LocalExecutor};
