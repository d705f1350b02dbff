//! The sandbox: a profile becomes a printable plan, and the plan becomes a confined process.
//!
//! The executor brings a job, its descriptors and a running [`Spawner`]; it gets a [`Sandbox`] back and, once
//! everything in it is dead, what became of it and what was enforced. A layer that a profile requires and the host
//! cannot give is an error before anything runs. This crate knows no async runtime and no skill, and it is the only
//! one with unsafe code.

mod cgroup;
mod child;
mod host;
pub mod inside;
mod kernel;
mod plan;
mod profile;
mod root;
mod seccomp;
mod spawner;

pub use profile::{
    Backing, Device, EnvironmentPolicy, FilesystemPolicy, MadeDirectory, MadeFile, MadeLink, MaskedPath, Need,
    NetworkPolicy, PassedVariable, Profile, ProfileLimits, Profiles, SetVariable, VisiblePath, WorkspacePolicy,
};

pub use seccomp::{
    ArgumentTest, CompileError, Constant, Filter, Instruction, SyscallAction, SyscallPolicy, SyscallRule,
    docker_profile,
};

pub use host::{Availability, CgroupFacts, HostFacts, MountApi, PathFact};

pub use plan::{
    Access, Bind, BindKind, CgroupLimits, CgroupVersion, Command, FileRights, HOSTNAME, INSIDE, Ids, Job, LandlockRule,
    LaunchPlan, Namespace, Op, Ownership, Phase, PlanError, Resource, ResourceLimit, Step, Unconfined, Workspace, plan,
};

pub use spawner::{
    Ended, LaunchError, LaunchFds, LimitHits, Sandbox, ScriptEnd, Spawner, SpawnerError, SpawnerKind, SpawnerOptions,
    become_spawner_if_asked,
};
