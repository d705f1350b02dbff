//! The launch plan: everything that will be done, in order, as data.

mod build;
mod display;
mod enforcement;
mod job;
mod op;
mod root;
mod text_bytes;

pub use build::{HOSTNAME, INSIDE, PlanError, plan};
pub use job::{Access, Bind, BindKind, Job, Ownership, Unconfined, Workspace};
pub use op::{
    CgroupLimits, CgroupVersion, Command, FileRights, Ids, LandlockRule, LaunchPlan, Namespace, Op, Phase, Resource,
    ResourceLimit, Step,
};
