//! The operations of a plan, in one enum for each process and time at which they are applied.
//!
//! | enum | applied by | when |
//! |---|---|---|
//! | [`TemplateOp`] | the spawner, in a mount namespace of its own | once for all runs with the same operations |
//! | [`SpawnOp`] | the spawner | up to the clone of the child |
//! | [`PrepareOp`] | pid 1 of the sandbox | as soon as the profile and the limits are known |
//! | [`RunOp`] | pid 1, or pid 2 of a parked sandbox | as soon as the job is known |
//! | [`ConfineOp`] | the process that applies the [`RunOp`]s | among them |
//! | | pid 1 of a parked sandbox | when the sandbox is parked |

use serde::{Deserialize, Serialize};

use super::job::{BindAccess, BindKind, BindOwner, CopyMethod, ListeningPorts};
use crate::cgroup::CgroupLimits;
use crate::host::{Resource, UidGid};
use crate::seccomp::Instruction;

/// One operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Builds the root that runs have in common.
    Template(TemplateOp),
    /// Creates the child.
    Spawn(SpawnOp),
    /// Prepares the sandbox before its job is known.
    Prepare(PrepareOp),
    /// Completes the sandbox for one job and starts the command.
    Run(RunOp),
    /// Confines a process irrevocably.
    Confine(ConfineOp),
}

/// When an operation is applied, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Once for all runs with the same [`TemplateOp`]s.
    Template,
    /// Before the child exists.
    Spawn,
    /// In the child, before the job is known.
    Prepare,
    /// In the child, with the workspace, the binds and the command of the job. In a parked sandbox this is pid 2.
    #[serde(rename = "release")]
    Run,
}

/// An operation that builds the root that runs have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TemplateOp {
    /// Make the mounts private, so that none propagates to the host.
    #[serde(rename = "private_mounts")]
    MakeMountsPrivate,
    /// Mount an empty root.
    NewRoot {
        /// Its size.
        bytes: u64,
        /// Its inodes.
        inodes: u64,
    },
    /// Create an empty directory.
    Directory {
        /// Its path.
        path: String,
    },
    /// Create the file or directory that the run mounts something on.
    MountPoint {
        /// Its path.
        path: String,
        /// The kind of the mount.
        kind: BindKind,
    },
    /// Create a symbolic link.
    Link {
        /// Its path.
        path: String,
        /// Its target.
        target: String,
    },
    /// Create a file.
    File {
        /// Its path.
        path: String,
        /// Its content.
        content: String,
    },
    /// Bind a path of the host, read-only, without devices and setuid.
    BindHost {
        /// The path, on the host and in the sandbox.
        path: String,
        /// The kind of the path.
        kind: BindKind,
        /// Whether the path may be missing.
        optional: bool,
    },
    /// Mount `/dev` with these nodes and the links `fd`, `stdin`, `stdout` and `stderr`.
    Devices {
        /// Names below `/dev`.
        names: Vec<String>,
    },
    /// Mount the outer `/proc`, which the fresh one covers later. Without it the kernel refuses to mount a fresh one in
    /// a user namespace.
    OuterProc,
    /// Make the root read-only.
    #[serde(rename = "seal_root")]
    MakeRootReadOnly,
    /// Pivot into the new root and unmount the old one.
    #[serde(rename = "enter_root")]
    PivotRoot,
}

/// An operation that creates the child.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpawnOp {
    /// Create a control group with these limits.
    CreateCgroup(CgroupLimits),
    /// Enter an empty network namespace that no other run has used.
    Network {
        /// Whether its loopback interface is up.
        loopback: bool,
    },
    /// Listen on TCP ports of allowed hosts, on a proxy port and for questions for names, in the network namespace of
    /// the run. The server accepts on the sockets.
    Listen(ListeningPorts),
    /// Use the mounts of the host, for a run without a mount namespace.
    #[serde(rename = "host_view")]
    UseHostMounts,
    /// Clone the child, which is pid 1 of its pid namespace.
    Clone {
        /// The new namespaces.
        namespaces: Vec<Namespace>,
        /// Whether the child starts in the control group.
        into_cgroup: bool,
    },
}

/// An operation that prepares the sandbox before its job is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrepareOp {
    /// Start a session without a terminal.
    NewSession,
    /// Write the id maps of the user namespace, and deny setgroups(2).
    MapIds {
        /// Inside the user namespace.
        inside: UidGid,
        /// On the host.
        outside: UidGid,
    },
    /// Switch to the ids of the script.
    BecomeUser(UidGid),
    /// Have the kernel kill this process when the spawner dies (`PR_SET_PDEATHSIG`).
    DieWithSpawner,
    /// Become a child subreaper and kill every descendant at the end, for a run without a pid namespace.
    AdoptOrphans,
    /// Enter a new cgroup namespace, whose root is the control group of the run.
    #[serde(rename = "root_cgroup_namespace")]
    UnshareCgroupNamespace,
    /// Set the host name.
    Hostname(String),
    /// Mount a private `/dev/shm`.
    SharedMemory {
        /// Its size.
        bytes: u64,
    },
    /// Mount a private `/dev/pts`.
    Terminals {
        /// The number of terminals that can be open at a time.
        max: u32,
    },
    /// Mount a fresh, read-only `/proc` of the pid namespace.
    Proc,
    /// Cover a file of `/proc` with an empty one.
    Mask {
        /// The file.
        path: String,
    },
    /// Empty the capability bounding set: from here on no exec adds a capability.
    EmptyBoundingSet,
    /// Prevent other processes from tracing the reaper and reading its memory (`PR_SET_DUMPABLE`).
    Undumpable,
}

/// What the launch passes as the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceMount {
    /// A detached mount of a file system in memory.
    Tmpfs,
    /// A detached mount of a file system in a file of the host.
    Image,
    /// A directory of the host.
    #[serde(rename = "disk")]
    Directory,
}

/// An operation that completes the sandbox for one job, or starts its command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOp {
    /// Mount the workspace, writable.
    MountWorkspace {
        /// The path.
        target: String,
        /// What the launch passes.
        #[serde(rename = "backing")]
        source: WorkspaceMount,
    },
    /// Mount a descriptor that the launch passes.
    BindDescriptor {
        /// Its index among the binds.
        index: u16,
        /// The path.
        target: String,
        /// The kind of the descriptor.
        kind: BindKind,
        /// Whether the script can write to it.
        access: BindAccess,
        /// The owner of its files inside the sandbox.
        owner: BindOwner,
    },
    /// Keep the directory of the workspace open that holds the layers of a writable skill. A later mount covers it, so
    /// that the script cannot reach the layers themselves.
    OpenSkillLayers {
        /// The path.
        directory: String,
    },
    /// Make the mounted skill writable without changing what was mounted.
    MakeSkillWritable {
        /// Where the skill is mounted.
        target: String,
        /// The name of the directory among the layers that holds the changes.
        name: String,
        /// How.
        method: CopyMethod,
        /// The number of bytes that a copy may take.
        max_copy_bytes: u64,
    },
    /// Change to the working directory.
    WorkingDirectory {
        /// The path.
        path: String,
    },
    /// Set limits per process.
    ResourceLimits(Vec<ResourceLimit>),
    /// Close everything but the three standard streams and the descriptors of the reaper.
    CloseDescriptors,
    /// Have pid 2 join the control group before it executes the command.
    EnterCgroup,
    /// Execute the command as pid 2.
    Exec,
}

/// An operation that confines a process irrevocably.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfineOp {
    /// Empty every capability set.
    DropCapabilities,
    /// Set `no_new_privs`: from here on no exec raises privileges.
    NoNewPrivileges,
    /// Enforce Landlock rules on files, TCP, signals and abstract sockets.
    Landlock {
        /// The version of the kernel's interface that the rules are written for.
        abi: u8,
        /// The granted paths; `None` leaves files unrestricted.
        files: Option<Vec<LandlockRule>>,
        /// Whether all TCP is refused, except connections to these ports.
        refuse_tcp: bool,
        /// The ports that the script may connect to although TCP is refused.
        tcp_ports: Vec<u16>,
        /// Whether signals and abstract sockets are limited to the sandbox.
        scope: bool,
    },
    /// Load the system call filter.
    Seccomp {
        /// The number of allowed calls.
        allowed: usize,
        /// The filter program.
        program: Vec<Instruction>,
    },
}

/// The namespaces that a run can have of its own.
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

/// A limit of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimit {
    /// The limited resource.
    pub resource: Resource,
    /// Soft and hard limit.
    pub limit: u64,
}

/// What Landlock grants below a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandlockRule {
    /// The path, inside the sandbox.
    pub path: String,
    /// The granted rights.
    pub rights: FileRights,
}

/// Rights on files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileRights {
    /// List directories.
    List,
    /// List and read.
    Read,
    /// List, read and execute.
    ReadExecute,
    /// Use existing device nodes.
    Devices,
    /// Everything but creating device nodes.
    Everything,
}

impl Op {
    /// When the operation is applied.
    pub fn phase(&self) -> Phase {
        match self {
            Self::Template(_) => Phase::Template,
            Self::Spawn(_) => Phase::Spawn,
            Self::Prepare(_) => Phase::Prepare,
            Self::Run(_) | Self::Confine(_) => Phase::Run,
        }
    }

    /// Whether the operation depends on the job. All others are the same for all jobs that a parked sandbox can run.
    pub(crate) fn depends_on_job(&self) -> bool {
        match self {
            // Pid 2 of a parked sandbox joins the group before its job is known.
            Self::Run(RunOp::EnterCgroup) => false,
            Self::Run(_) => true,
            Self::Template(_) | Self::Spawn(_) | Self::Prepare(_) | Self::Confine(_) => false,
        }
    }
}

impl From<TemplateOp> for Op {
    fn from(op: TemplateOp) -> Self {
        Self::Template(op)
    }
}

impl From<SpawnOp> for Op {
    fn from(op: SpawnOp) -> Self {
        Self::Spawn(op)
    }
}

impl From<PrepareOp> for Op {
    fn from(op: PrepareOp) -> Self {
        Self::Prepare(op)
    }
}

impl From<RunOp> for Op {
    fn from(op: RunOp) -> Self {
        Self::Run(op)
    }
}

impl From<ConfineOp> for Op {
    fn from(op: ConfineOp) -> Self {
        Self::Confine(op)
    }
}
