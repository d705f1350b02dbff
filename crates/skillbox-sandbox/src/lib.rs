//! The sandbox: a profile becomes a printable plan, and the plan becomes a confined process.
//!
//! The executor passes a job and its descriptors to a running [`Spawner`] and receives a [`Sandbox`]. Once every process
//! in it is dead, the sandbox returns how the run ended and what was enforced. A layer that a profile requires and the host
//! cannot enforce is an error before anything runs. This crate uses no async runtime and knows no skills, and it is the
//! only one with unsafe code.

mod cgroup;
mod child;
pub mod container_init;
mod descriptors;
mod host;
mod id_maps;
mod kernel;
mod plan;
mod profile;
mod protocol;
mod root;
mod seccomp;
mod signals;
mod spawner;
mod spawner_client;
mod spawner_options;

pub use profile::{
    Backing, Device, EmptyDirectory, EnvironmentPolicy, FilesystemPolicy, FixedFile, MaskedPath, Need, NetworkPolicy,
    PassedVariable, Profile, ProfileLimits, Profiles, SetVariable, SymbolicLink, VisiblePath, WorkspacePolicy,
};

pub use seccomp::{
    ArgumentTest, CompileError, Constant, Filter, Instruction, SyscallAction, SyscallPolicy, SyscallRule,
    docker_seccomp_profile,
};

pub use cgroup::{CgroupLimits, CgroupVersion};

pub use host::{Availability, CgroupFacts, HostFacts, Ids, MountApi, PathFact, Resource};

pub use plan::{
    Access, Bind, BindKind, Command, ConfineOp, FileRights, HOSTNAME, Job, LandlockRule, LaunchPlan, Namespace, Op,
    Ownership, Phase, PlanError, PrepareOp, ResourceLimit, RunOp, SANDBOX_IDS, SpawnOp, Step, TemplateOp, Unconfined,
    WorkspaceSource, plan,
};

pub use spawner_options::{SpawnerKind, SpawnerOptions};

pub use spawner_client::{
    LaunchError, LaunchFds, LimitHits, ParkingFailure, Sandbox, SandboxResult, ScriptEnd, Spawner, SpawnerError,
};

pub use spawner::become_spawner_if_asked;
