//! The steps of a launch.

use std::ffi::CString;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use skillbox_model::{Enforcement, Layer, ProfileName};

use super::job::{Access, BindKind, Ownership};
use crate::profile::{Backing, Need};
use crate::seccomp::Instruction;

/// An ordered list of everything that is done to start one script, made by [`super::plan`], printed by `Display`,
/// and applied step by step as it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaunchPlan {
    /// The profile that asked for it.
    pub profile: ProfileName,
    /// The steps, in order; the first has number 1.
    pub steps: Arc<[Step]>,
    /// What is started in the end.
    pub command: Command,
    /// What is enforced when every step succeeds.
    pub enforcement: Enforcement,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its number, which failures name.
    pub number: u16,
    /// Who does it, and when.
    pub phase: Phase,
    /// The layers that it makes up; without any it is plumbing that must succeed.
    pub layers: Vec<Layer>,
    /// What a failure means: `Required` ends the launch, `Preferred` is recorded and the launch goes on.
    pub need: Need,
    /// What is done.
    pub op: Op,
}

/// Who does a step, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The spawner, once for every run with the same steps.
    Template,
    /// The spawner, before the child exists.
    Spawn,
    /// The child, with nothing but the profile and the limits.
    Prepare,
    /// The child, with the workspace, the binds and the command of this run. In a sandbox that was made ahead this is
    /// pid 2, which is there already; pid 1 has confined itself by then.
    Release,
}

/// What is started in the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// The program and its arguments. A program without a slash is looked up in the `PATH` of `env`, inside.
    #[serde(with = "super::text_bytes")]
    pub argv: Vec<CString>,
    /// The whole environment, `NAME=value`.
    #[serde(with = "super::text_bytes")]
    pub env: Vec<CString>,
}

/// A user and a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ids {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

/// The namespaces of the kernel that a run can have of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Namespace {
    /// Ids and capabilities.
    User,
    /// Mounts.
    Mount,
    /// Processes.
    Pid,
    /// System V objects and message queues.
    Ipc,
    /// The host name.
    Uts,
    /// Names of control groups.
    Cgroup,
}

/// Which interface of control groups a host has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CgroupVersion {
    /// One tree per controller.
    V1,
    /// One tree.
    V2,
}

/// What a run's control group allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupLimits {
    /// The interface.
    pub version: CgroupVersion,
    /// Bytes of memory, swap included.
    pub memory: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u64>,
    /// Cores' worth of CPU bandwidth, in thousandths.
    pub cpu_quota_millis: Option<u32>,
    /// Whether CPU time is counted.
    pub count_cpu: bool,
}

/// A limit of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimit {
    /// Of what.
    pub resource: Resource,
    /// Soft and hard limit.
    pub limit: u64,
}

/// The resources that are limited per process, named as in setrlimit(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Size of a core dump.
    Core,
    /// CPU seconds.
    Cpu,
    /// Size of a file.
    FileSize,
    /// Locked memory.
    LockedMemory,
    /// Bytes in message queues.
    MessageQueue,
    /// How far priority can be raised.
    Nice,
    /// Open descriptors.
    OpenFiles,
    /// Processes and threads of this user in this user namespace.
    Processes,
    /// Real-time priority.
    RealTimePriority,
    /// Queued signals.
    PendingSignals,
}

/// What Landlock grants below a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandlockRule {
    /// The path, inside.
    pub path: String,
    /// What is granted.
    pub rights: FileRights,
}

/// What may be done with files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileRights {
    /// List directories.
    List,
    /// List and read.
    Read,
    /// List, read and execute.
    ReadExecute,
    /// Use device nodes that exist.
    Devices,
    /// Everything but device nodes.
    Everything,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// Make a control group with these limits.
    CreateCgroup(CgroupLimits),
    /// Clone the child, which becomes pid 1 of its pid namespace.
    Clone {
        /// The namespaces of its own.
        namespaces: Vec<Namespace>,
        /// Whether it is born in the control group.
        into_cgroup: bool,
    },
    /// Start a session without a terminal.
    NewSession,
    /// Say what the ids inside mean outside, and deny setgroups.
    MapIds {
        /// Inside the user namespace.
        inside: Ids,
        /// On the host.
        outside: Ids,
    },
    /// Take on the ids that the script has.
    BecomeUser(Ids),
    /// Die when the spawner dies.
    DieWithSpawner,
    /// Make the control group the root of its namespace.
    RootCgroupNamespace,
    /// Set the host name.
    Hostname(String),
    /// Put the child into an empty network namespace that no other run has used.
    Network {
        /// Whether its loopback interface is up.
        loopback: bool,
    },
    /// Show the host's own mounts, for a run without a mount namespace.
    HostView,
    /// Adopt orphans and kill every descendant at the end, for a run without a pid namespace.
    AdoptOrphans,
    /// Cut the mounts off from those of the host.
    PrivateMounts,
    /// Make an empty root.
    NewRoot {
        /// Its size.
        bytes: u64,
        /// Its inodes.
        inodes: u64,
    },
    /// Make an empty directory.
    Directory {
        /// Where.
        path: String,
    },
    /// Make the place for a mount of the run.
    MountPoint {
        /// Where.
        path: String,
        /// What is mounted there.
        kind: BindKind,
    },
    /// Make a symbolic link.
    Link {
        /// Where.
        path: String,
        /// What it leads to.
        target: String,
    },
    /// Make a file.
    File {
        /// Where.
        path: String,
        /// Its content.
        content: String,
    },
    /// Show a path of the host, read-only, without devices and setuid.
    BindHost {
        /// The same inside and outside.
        path: String,
        /// What it is.
        kind: BindKind,
        /// A host that lost it since is fine.
        optional: bool,
    },
    /// Make `/dev` of these nodes, with the links of every process to its own descriptors.
    Devices {
        /// Names below `/dev`.
        names: Vec<String>,
    },
    /// Mount a private `/dev/shm`.
    SharedMemory {
        /// Its size.
        bytes: u64,
    },
    /// Mount the outer `/proc` where the fresh one will cover it; without it the kernel makes no fresh one.
    OuterProc,
    /// Mount a fresh, read-only `/proc` of the pid namespace.
    Proc,
    /// Cover a file of `/proc`.
    Mask {
        /// The file.
        path: String,
    },
    /// Make the new root the root, and let go of the old one.
    EnterRoot,
    /// Set limits per process.
    ResourceLimits(Vec<ResourceLimit>),
    /// Mount the workspace, writable.
    MountWorkspace {
        /// Where.
        target: String,
        /// What holds it.
        backing: Backing,
    },
    /// Mount a descriptor that came with the launch.
    BindDescriptor {
        /// Which of the binds, from 0.
        index: u16,
        /// Where.
        target: String,
        /// What it is.
        kind: BindKind,
        /// Whether it can be written to.
        access: Access,
        /// Whose files it shows.
        owner: Ownership,
    },
    /// Make the root itself read-only.
    SealRoot,
    /// Go to the working directory.
    WorkingDirectory {
        /// Where.
        path: String,
    },
    /// Empty every capability set.
    DropCapabilities,
    /// Empty the capability bounding set: no exec from here on gives any.
    EmptyBoundingSet,
    /// Keep others from tracing and reading the reaper.
    Undumpable,
    /// No exec raises privileges from here on.
    NoNewPrivileges,
    /// Enforce rules on files, TCP, signals and abstract sockets.
    Landlock {
        /// The version of the kernel's interface that the rules are made for.
        abi: u8,
        /// What is granted; none leaves files alone.
        files: Option<Vec<LandlockRule>>,
        /// Whether all of TCP is refused.
        refuse_tcp: bool,
        /// Whether signals and abstract sockets end at the sandbox.
        scope: bool,
    },
    /// Close everything but the three standard descriptors and the reaper's own.
    CloseDescriptors,
    /// Load the system call filter.
    Seccomp {
        /// How many calls go through.
        allowed: u16,
        /// The program.
        program: Vec<Instruction>,
    },
    /// Let pid 2 join the control group before it starts the command.
    EnterCgroup,
    /// Start the command as pid 2.
    Exec,
}

impl Op {
    /// Whether the step mounts something that the run brings as a descriptor.
    pub(crate) fn mounts_descriptor(&self) -> bool {
        matches!(self, Self::MountWorkspace { .. } | Self::BindDescriptor { .. })
    }

    /// Whether a sandbox that is made ahead knows the step before there is a run for it, and does of it what it can.
    pub(crate) fn is_rehearsed(&self) -> bool {
        self.confines() || matches!(self, Self::EnterCgroup)
    }

    /// Whether the step confines every process of the sandbox in the same way, whatever is run.
    pub(crate) fn confines(&self) -> bool {
        matches!(
            self,
            Self::DropCapabilities | Self::NoNewPrivileges | Self::Landlock { .. } | Self::Seccomp { .. }
        )
    }
}
