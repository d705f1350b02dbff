//! The messages, in their order.
//!
//! ```text
//! runner    Ready
//! executor  Job, then Entry and its data for every directory, file and link, then Start
//! runner    Started, or Refused
//! both      output, standard input (Data, answered by StdinConsumed), Kill
//! runner    Ended, then WorkspaceEntry for everything in the workspace, EndOfList
//! executor  RequestFiles …, EndOfRequests
//! runner    File and its data for each, FilesSent
//! executor  Close, or it closes the stream: the runner exits
//! ```

use serde::{Deserialize, Serialize};
use skillbox_sandbox::LandlockRule;

/// The version of the protocol. An image with another version cannot be used.
pub const PROTOCOL: u32 = 1;

/// A message from the executor.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToRunner {
    /// The command to run.
    Job(Box<Job>),
    /// An entry of the workspace; the bytes of a file follow as data.
    Entry(Entry),
    /// Everything is sent: check it and start.
    Start,
    /// The end of standard input.
    StdinEnd,
    /// Kill every process.
    Kill,
    /// Send the files with these indices in the list.
    RequestFiles(Vec<u32>),
    /// No further files are requested.
    EndOfRequests,
    /// The run is over.
    Close,
}

/// A message from the runner.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToExecutor {
    /// The runner is ready for a job.
    Ready(Box<ContainerFacts>),
    /// The command runs, or could not be executed.
    Started {
        /// The error number when it could not be executed.
        exec_error: Option<i32>,
    },
    /// The job was refused, and no command was started.
    Refused {
        /// The reason.
        reason: String,
        /// Whether the workspace has no space for the files.
        is_full: bool,
    },
    /// The command read this many bytes of standard input, or they were discarded because it does not read.
    StdinConsumed(u32),
    /// Every process is dead.
    Ended(RunEnd),
    /// An entry of the workspace.
    WorkspaceEntry(Entry),
    /// The list is complete.
    EndOfList {
        /// The number of entries that could not be listed.
        skipped: u64,
    },
    /// A requested file; its bytes follow.
    File {
        /// Its index in the list.
        index: u32,
        /// Its size.
        size: u64,
    },
    /// A requested file that cannot be read.
    FileFailed {
        /// Its index in the list.
        index: u32,
        /// The error number.
        errno: i32,
    },
    /// Every requested file was sent.
    FilesSent,
}

/// One command.
#[derive(Debug, Serialize, Deserialize)]
pub struct Job {
    /// The skills that are sent, with their digests.
    pub skills: Vec<SkillTree>,
    /// The program and its arguments.
    pub argv: Vec<Vec<u8>>,
    /// The whole environment.
    pub env: Vec<(Vec<u8>, Vec<u8>)>,
    /// The working directory, absolute.
    pub cwd: Vec<u8>,
    /// Whether standard input is sent.
    pub has_stdin: bool,
    /// The largest file that the command may write.
    pub file_bytes: u64,
    /// The limit of the CPU time of all processes.
    pub cpu_ms: u64,
    /// What the runner adds to the isolation of the container.
    pub confinement: Confinement,
}

/// Landlock, which no container engine applies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// Rules on files.
    pub files: Option<Vec<LandlockRule>>,
    /// Whether TCP is refused.
    pub refuse_tcp: bool,
    /// Whether signals and abstract sockets are limited to the command.
    pub scope: bool,
}

/// A skill below the workspace.
#[derive(Debug, Serialize, Deserialize)]
pub struct SkillTree {
    /// Its path.
    pub path: Vec<u8>,
    /// Its digest.
    pub digest: [u8; 32],
    /// Names at its top that skillbox added, and that the digest does not cover.
    pub unhashed_names: Vec<String>,
}

/// An entry of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its path below the workspace.
    pub path: Vec<u8>,
    /// Its kind.
    pub kind: EntryKind,
}

/// The kind of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryKind {
    /// A directory.
    Directory {
        /// Its permission bits.
        mode: u32,
    },
    /// A regular file.
    File {
        /// Its permission bits.
        mode: u32,
        /// Its size.
        size: u64,
    },
    /// Another name of an earlier file.
    HardLink {
        /// Its index in the list.
        index: u32,
    },
    /// A symbolic link.
    Link {
        /// Its target.
        target: Vec<u8>,
    },
    /// A FIFO.
    Fifo,
    /// A socket.
    Socket,
    /// A device.
    Device,
}

/// The container as the runner finds it before the job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerFacts {
    /// The version of its protocol.
    pub protocol: u32,
    /// Its pid: only pid 1 can kill every process.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
    /// Whether a system call filter is loaded.
    pub seccomp: bool,
    /// Whether no exec raises privileges.
    pub no_new_privileges: bool,
    /// Whether every capability set is empty.
    pub no_capabilities: bool,
    /// Whether the root is read-only.
    pub read_only_root: bool,
    /// The size of the workspace's own file system.
    pub workspace_bytes: u64,
    /// Its inodes.
    pub workspace_inodes: u64,
    /// The number of network interfaces other than loopback.
    pub interfaces: u32,
    /// The version of Landlock.
    pub landlock_abi: u8,
    /// The memory limit of its control group.
    pub memory_bytes: Option<u64>,
    /// The same with swap.
    pub memory_and_swap_bytes: Option<u64>,
    /// The process limit of its control group.
    pub pids: Option<u64>,
    /// Whether its control group counts CPU time.
    pub has_cpu_time: bool,
    /// The limit of open files of one process.
    pub open_files: Option<u64>,
}

/// Why the runner killed the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KillCause {
    /// The executor asked for it.
    Executor,
    /// The CPU time was used up.
    Cpu,
}

/// The result of a run, when every process is dead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    /// The command's exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Why the runner killed it.
    pub killed_by: Option<KillCause>,
    /// The time from its start to the death of every process, in microseconds.
    pub micros: u64,
    /// CPU time of all processes, in microseconds.
    pub cpu_micros: u64,
    /// The most memory in use at once.
    pub peak_memory: Option<u64>,
    /// Whether the kernel killed a process over the memory limit.
    pub memory_hit: bool,
    /// Whether the kernel refused a process over the limit of processes.
    pub pids_hit: bool,
    /// Whether the workspace has no space left.
    pub workspace_full: bool,
}
