//! Control groups, versions 1 and 2: finds where groups can be created, creates one per run, and removes stale ones.

mod control_file;
mod factory;
mod hierarchy;
mod layout;
mod limits;
mod run_cgroup;
mod stale;
mod usage;

pub(crate) use factory::CgroupFactory;
pub(crate) use layout::{CgroupLayout, CgroupUnavailable, Controller, DELEGATION_FIX};
pub use limits::{CgroupLimits, CgroupVersion};
pub(crate) use run_cgroup::RunCgroup;
pub(crate) use usage::UsageFiles;
