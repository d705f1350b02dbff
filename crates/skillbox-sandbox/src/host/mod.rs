//! What this host can give: facts that are cheap to read, and proofs by doing.

mod facts;
mod gather;

pub use facts::{Availability, CgroupFacts, HostFacts, MountApi, PathFact};
pub(crate) use gather::landlock_abi;
