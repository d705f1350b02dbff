//! The resources that setrlimit(2) limits.

use serde::{Deserialize, Serialize};

/// A resource of setrlimit(2), which the kernel limits per process (`Processes`: per user).
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
    /// The highest priority that a process can set with nice(2).
    Nice,
    /// Open file descriptors.
    OpenFiles,
    /// Processes and threads of this user in this user namespace.
    Processes,
    /// Real-time priority.
    RealTimePriority,
    /// Queued signals.
    PendingSignals,
}

impl Resource {
    /// Every limited resource.
    pub(crate) const ALL: [Self; 10] = [
        Self::Core,
        Self::Cpu,
        Self::FileSize,
        Self::LockedMemory,
        Self::MessageQueue,
        Self::Nice,
        Self::OpenFiles,
        Self::Processes,
        Self::RealTimePriority,
        Self::PendingSignals,
    ];

    /// The name in a printed plan, as in prlimit(1).
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Cpu => "cpu",
            Self::FileSize => "fsize",
            Self::LockedMemory => "memlock",
            Self::MessageQueue => "msgqueue",
            Self::Nice => "nice",
            Self::OpenFiles => "nofile",
            Self::Processes => "nproc",
            Self::RealTimePriority => "rtprio",
            Self::PendingSignals => "sigpending",
        }
    }

    /// The argument for getrlimit(2) and setrlimit(2).
    pub(crate) fn to_rlimit(self) -> rustix::process::Resource {
        use rustix::process::Resource as Rlimit;
        match self {
            Self::Core => Rlimit::Core,
            Self::Cpu => Rlimit::Cpu,
            Self::FileSize => Rlimit::Fsize,
            Self::LockedMemory => Rlimit::Memlock,
            Self::MessageQueue => Rlimit::Msgqueue,
            Self::Nice => Rlimit::Nice,
            Self::OpenFiles => Rlimit::Nofile,
            Self::Processes => Rlimit::Nproc,
            Self::RealTimePriority => Rlimit::Rtprio,
            Self::PendingSignals => Rlimit::Sigpending,
        }
    }
}
