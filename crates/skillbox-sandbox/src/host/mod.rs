//! Probes which isolation features this host and the caller's privileges allow.

mod cgroup_facts;
mod facts;
mod mapped_ids;
mod probe;
mod resource;
mod uid_gid;

pub(crate) use cgroup_facts::cgroup_facts;
pub use facts::{Availability, CgroupFacts, HostFacts, MountApi, PathType};
pub(crate) use probe::landlock_abi;
pub use resource::Resource;
pub use uid_gid::UidGid;
