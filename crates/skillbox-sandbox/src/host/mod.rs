//! What this host and the caller's privileges allow.

mod cgroup_facts;
mod facts;
mod id_map;
mod ids;
mod probe;
mod resource;

pub(crate) use cgroup_facts::cgroup_facts;
pub use facts::{Availability, CgroupFacts, HostFacts, MountApi, PathFact};
pub use ids::Ids;
pub(crate) use probe::landlock_abi;
pub use resource::Resource;
