//! The messages of the protocol. Their order in a run:
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

/// The version of the protocol. The executor refuses an image whose runner has another version.
pub const PROTOCOL_VERSION: u32 = 2;

/// A message from the executor.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToRunner {
    /// The command to run.
    Job(Box<Job>),
    /// An entry to create in the workspace; the bytes of a file follow as data.
    Entry(Entry),
    /// All entries were sent: check them, and start the command.
    Start,
    /// The end of standard input.
    StdinEnd,
    /// Kill every process.
    Kill,
    /// Send the files with these indices in the list of workspace entries.
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
    /// The command was executed, or could not be executed.
    Started {
        /// The errno if the command could not be executed.
        exec_error: Option<i32>,
    },
    /// The job was refused, and no command was started.
    Refused {
        /// The reason.
        reason: String,
        /// Whether the workspace has no space for the files.
        is_workspace_full: bool,
    },
    /// The command has read this many more bytes of standard input, or they were discarded because it has closed its
    /// input.
    StdinConsumed(u32),
    /// Every process of the command is dead.
    Ended(CommandResult),
    /// An entry of the workspace after the run.
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
        /// The errno.
        errno: i32,
    },
    /// Every requested file was sent, or has failed.
    FilesSent,
}

/// One command and its limits.
#[derive(Debug, Serialize, Deserialize)]
pub struct Job {
    /// The skills among the sent entries, with their expected digests.
    pub skills: Vec<SkillTree>,
    /// The program and its arguments.
    pub argv: Vec<Vec<u8>>,
    /// The whole environment.
    pub env: Vec<(Vec<u8>, Vec<u8>)>,
    /// The working directory, absolute.
    pub cwd: Vec<u8>,
    /// Whether the executor sends standard input.
    pub has_stdin: bool,
    /// The maximum size of a file that the command writes.
    pub max_file_bytes: u64,
    /// The limit of the CPU time of all processes together, in milliseconds.
    pub cpu_limit_ms: u64,
    /// The maximum number of bytes of the workspace, with what the command changes in its skill.
    pub max_workspace_bytes: u64,
    /// The same for inodes.
    pub max_workspace_inodes: u64,
    /// The isolation that the runner adds to that of the container.
    pub confinement: LandlockConfinement,
}

/// Landlock restrictions, which container engines do not apply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandlockConfinement {
    /// The only accesses to files that are allowed; none leaves files unrestricted.
    pub files: Option<Vec<LandlockRule>>,
    /// Whether TCP is refused.
    pub refuse_tcp: bool,
    /// Whether signals and connections to abstract sockets are limited to processes of the run.
    pub scope: bool,
}

/// A skill in the workspace.
#[derive(Debug, Serialize, Deserialize)]
pub struct SkillTree {
    /// Its path below the workspace.
    pub path: Vec<u8>,
    /// Its expected digest.
    pub digest: [u8; 32],
    /// Top-level names that skillbox added. The digest does not include them.
    pub names_outside_digest: Vec<String>,
    /// Whether the command may change it. What it changed is then among the listed entries.
    pub is_writable: bool,
}

/// An entry of a file tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its path below the root of the tree.
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
        /// The index of the earlier file in the list.
        index: u32,
    },
    /// A symbolic link.
    Symlink {
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

/// The state of the container before the job, as seen by the runner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerFacts {
    /// The protocol version of the runner.
    pub protocol: u32,
    /// The pid of the runner, which must be 1: only pid 1 can kill every other process of the container.
    pub pid: u32,
    /// The user id of the runner.
    pub uid: u32,
    /// Whether a seccomp filter is loaded.
    pub has_seccomp_filter: bool,
    /// Whether no_new_privs is set.
    pub no_new_privileges: bool,
    /// Whether all capability sets are empty.
    pub no_capabilities: bool,
    /// Whether the root is read-only.
    pub read_only_root: bool,
    /// The size of the workspace's file system; 0 if it has none of its own.
    pub workspace_bytes: u64,
    /// The number of inodes of that file system.
    pub workspace_inodes: u64,
    /// The number of network interfaces other than loopback.
    pub network_interfaces: u32,
    /// The Landlock ABI version; 0 without Landlock.
    pub landlock_abi: u8,
    /// The memory limit of the control group.
    pub memory_limit_bytes: Option<u64>,
    /// The limit of memory and swap together.
    pub memory_and_swap_limit_bytes: Option<u64>,
    /// The process limit of the control group.
    pub process_limit: Option<u64>,
    /// Whether the control group measures CPU time.
    pub counts_cpu_time: bool,
    /// The limit of open files per process.
    pub open_file_limit: Option<u64>,
}

/// Why the runner killed the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KillCause {
    /// The executor sent [`ToRunner::Kill`].
    Executor,
    /// The CPU time limit was exceeded.
    CpuLimit,
    /// The workspace and what the command changed in its skill exceed the limit together.
    WorkspaceLimit,
}

/// The result of a command, after all its processes are dead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandResult {
    /// The exit code, unless a signal ended the command.
    pub exit_code: Option<i32>,
    /// The signal that ended the command, if any.
    pub signal: Option<i32>,
    /// Why the runner killed the command, if it did.
    pub killed_by: Option<KillCause>,
    /// The time from the start of the command to the death of the last process, in microseconds.
    pub duration_micros: u64,
    /// The CPU time of all processes, in microseconds.
    pub cpu_micros: u64,
    /// The peak memory use, in bytes.
    pub peak_memory: Option<u64>,
    /// Whether the kernel killed a process because of the memory limit.
    pub memory_limit_hit: bool,
    /// Whether the kernel refused to create a process because of the process limit.
    pub pids_limit_hit: bool,
    /// Whether the workspace has no space left.
    pub workspace_full: bool,
}
