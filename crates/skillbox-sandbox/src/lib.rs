//! The sandbox: a profile becomes a printable plan, and the plan becomes a confined process.
//!
//! The executor turns a job into a [`LaunchPlan`], passes it with the descriptors of the job to a running [`Spawner`],
//! and receives a [`Sandbox`]. Once every process of the sandbox is dead, [`Sandbox::finish`] returns how the run ended
//! and what was enforced. If a profile requires a layer that the host cannot enforce, planning or launching fails
//! before the command runs. This crate uses no async runtime, knows nothing about skills, and is the only one with
//! unsafe code.

mod cgroup;
mod child;
mod close_descriptors;
pub mod container_init;
mod disk_image;
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
    AllowedHost, Device, EmptyDirectory, EnvironmentPolicy, FilesystemPolicy, FixedFile, FixedVariable, MaskedPath,
    Need, NetworkPolicy, PassedVariable, Profile, ProfileLimits, Profiles, SkillDirAccess, SymbolicLink, VisiblePath,
    WorkspaceBacking, WorkspacePolicy,
};

pub use seccomp::{
    ArgumentTest, CompileError, Constant, Filter, Instruction, SyscallAction, SyscallPolicy, SyscallRule,
    docker_seccomp_profile,
};

pub use cgroup::{CgroupLimits, CgroupVersion};

pub use kernel::has_open_writers;

#[doc(hidden)]
pub use protocol::decode_any_message;

pub use disk_image::{DiskImage, disk_image_obstacle};

pub use host::{Availability, CgroupFacts, HostFacts, MountApi, PathType, Resource, UidGid};

pub use plan::{
    Bind, BindAccess, BindKind, BindOwner, Command, ConfineOp, CopyMethod, FileRights, HOSTNAME, Job, LandlockRule,
    LaunchPlan, ListeningPorts, Namespace, Op, Phase, PlanError, PrepareOp, ResourceLimit, RunOp, SANDBOX_IDS, SpawnOp,
    Step, TemplateOp, UnconfinedPolicy, WorkspaceMount, WorkspaceSource, WritableSkill, plan,
};

pub use spawner_options::{SpawnerKind, SpawnerOptions};

pub use spawner_client::{
    CommandEnd, LaunchError, LaunchFds, LimitHits, ParkingFailure, Sandbox, SandboxResult, Spawner, SpawnerError,
};

pub use spawner::run_spawner_if_requested;
