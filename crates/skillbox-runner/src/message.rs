//! What the two sides say.
//!
//! ```text
//! runner    Hello
//! executor  Job, then Entry and its data for every directory, file and link, then Start
//! runner    Started, or Refused
//! both      output, standard input (Data, answered by StdinTaken), Kill
//! runner    Ended, then Listed for everything in the workspace, ListEnd
//! executor  Want …, WantEnd
//! runner    File and its data for each, Done
//! executor  Bye, and the runner ends; so it does whenever the stream ends
//! ```

use serde::{Deserialize, Serialize};
use skillbox_sandbox::LandlockRule;

/// Which conversation this is. Another number is another image.
pub const PROTOCOL: u32 = 1;

/// From the executor.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToRunner {
    /// What will be run.
    Job(Box<Job>),
    /// Something for the workspace; a file's bytes follow as data.
    Entry(Entry),
    /// Everything is there: check it and start.
    Start,
    /// No more standard input.
    StdinEnd,
    /// End everything.
    Kill,
    /// Send these, by their place in the list.
    RequestFiles(Vec<u32>),
    /// Nothing else is wanted.
    EndOfRequests,
    /// The conversation is over.
    Close,
}

/// From the runner.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToExecutor {
    /// The runner is up.
    Ready(Box<ContainerFacts>),
    /// The command runs, or could not be executed.
    Started {
        /// Why it could not.
        exec_error: Option<i32>,
    },
    /// Nothing was run.
    Refused {
        /// Why not.
        reason: String,
        /// Whether there was no room for what was sent.
        is_full: bool,
    },
    /// So many bytes of standard input went to the command, or nowhere because it does not read.
    StdinConsumed(u32),
    /// Everything is dead.
    Ended(RunEnd),
    /// Something in the workspace.
    WorkspaceEntry(Entry),
    /// The list is whole.
    EndOfList {
        /// What could not be listed.
        left_out: u64,
    },
    /// A wanted file; so many bytes follow.
    File {
        /// Its place in the list.
        index: u32,
        /// Its size now.
        size: u64,
    },
    /// A wanted file that cannot be read.
    FileFailed {
        /// Its place in the list.
        index: u32,
        /// Why not.
        errno: i32,
    },
    /// Everything wanted was sent.
    Done,
}

/// One command.
#[derive(Debug, Serialize, Deserialize)]
pub struct Job {
    /// The skills that will be sent, with what they must hash to.
    pub skills: Vec<SkillTree>,
    /// The program and its arguments.
    pub argv: Vec<Vec<u8>>,
    /// The whole environment.
    pub env: Vec<(Vec<u8>, Vec<u8>)>,
    /// The working directory, absolute.
    pub cwd: Vec<u8>,
    /// Whether standard input comes.
    pub has_stdin: bool,
    /// The largest file that may be written.
    pub file_bytes: u64,
    /// CPU time of everything together.
    pub cpu_ms: u64,
    /// What the runner itself adds to the container's isolation.
    pub confinement: Confinement,
}

/// Landlock, which no container engine applies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// Rules on files.
    pub files: Option<Vec<LandlockRule>>,
    /// No TCP.
    pub refuse_tcp: bool,
    /// No signal and no abstract socket out.
    pub scope: bool,
}

/// A skill below the workspace.
#[derive(Debug, Serialize, Deserialize)]
pub struct SkillTree {
    /// Where it is.
    pub path: Vec<u8>,
    /// What it must hash to.
    pub digest: [u8; 32],
    /// Names at its top that are ours and not the skill's.
    pub unhashed_names: Vec<String>,
}

/// Something in a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Where, below the workspace.
    pub path: Vec<u8>,
    /// What.
    pub kind: EntryKind,
}

/// What something in a tree is.
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
    /// Another name of a file that was told before.
    HardLink {
        /// Its place in the list.
        index: u32,
    },
    /// A symbolic link.
    Link {
        /// Its text.
        target: Vec<u8>,
    },
    /// A FIFO.
    Fifo,
    /// A socket.
    Socket,
    /// A device.
    Device,
}

/// What the runner finds around itself before anything else happens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerFacts {
    /// The conversation it speaks.
    pub protocol: u32,
    /// Its pid: 1, or it cannot end everything.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
    /// Whether a system call filter is in force.
    pub seccomp: bool,
    /// Whether no exec raises privileges.
    pub no_new_privileges: bool,
    /// Whether every capability set is empty.
    pub no_capabilities: bool,
    /// Whether the root is read-only.
    pub read_only_root: bool,
    /// Bytes of the workspace's own file system.
    pub workspace_bytes: u64,
    /// Its inodes.
    pub workspace_inodes: u64,
    /// Network interfaces beside loopback.
    pub interfaces: u32,
    /// The version of Landlock.
    pub landlock_abi: u8,
    /// The memory limit of its control group.
    pub memory_bytes: Option<u64>,
    /// The same with swap.
    pub memory_and_swap_bytes: Option<u64>,
    /// The process limit of its control group.
    pub pids: Option<u64>,
    /// Whether its control group tells CPU time.
    pub has_cpu_time: bool,
    /// Open files of one process.
    pub open_files: Option<u64>,
}

/// Who ended the command, where that was not itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KillCause {
    /// The executor asked for it.
    Order,
    /// The CPU time was used up.
    Cpu,
}

/// What is known when everything is dead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    /// The command's exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Who else ended it.
    pub killed_by: Option<KillCause>,
    /// From its start to the death of everything, in microseconds.
    pub micros: u64,
    /// CPU time of everything, in microseconds.
    pub cpu_micros: u64,
    /// The most memory in use at once.
    pub peak_memory: Option<u64>,
    /// The kernel killed something for its memory.
    pub memory_hit: bool,
    /// The kernel refused a process for their number.
    pub pids_hit: bool,
    /// The workspace has no room left.
    pub workspace_full: bool,
}
