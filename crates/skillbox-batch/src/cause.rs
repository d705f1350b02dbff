//! Why a job failed, for retries and for the summary.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use skillbox_model::{EndedBy, ErrorCode};

macro_rules! causes {
    ($($(#[doc = $doc:literal])* $variant:ident = $text:literal;)*) => {
        /// Why a job failed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum FailureCause {
            $($(#[doc = $doc])* #[serde(rename = $text)] $variant,)*
        }

        impl FailureCause {
            /// Every cause.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name in options and results.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }
        }
    };
}

causes! {
    /// The command exited with a code other than 0.
    Exit = "exit";
    /// A signal ended the command.
    Signal = "signal";
    /// The time limit.
    Timeout = "timeout";
    /// The memory limit.
    Memory = "memory";
    /// The limit of CPU time.
    Cpu = "cpu";
    /// The limit of processes.
    Pids = "pids";
    /// The workspace was full.
    Disk = "disk";
    /// The command printed too much.
    Output = "output";
    /// Somebody cancelled this run.
    Cancelled = "cancelled";
    /// The run was lost: the executor or a service that it needs failed.
    Lost = "lost";
    /// An output file could not be written to the result directory.
    Export = "export";
    /// skillbox refused the request.
    Refused = "refused";
}

impl FailureCause {
    /// The cause for a command that ended without success.
    pub(crate) fn from_end(ended_by: EndedBy) -> Self {
        match ended_by {
            EndedBy::Exit => Self::Exit,
            EndedBy::Signal => Self::Signal,
            EndedBy::Timeout => Self::Timeout,
            EndedBy::Memory => Self::Memory,
            EndedBy::Cpu => Self::Cpu,
            EndedBy::Pids => Self::Pids,
            EndedBy::Disk => Self::Disk,
            EndedBy::Output => Self::Output,
            EndedBy::Cancelled => Self::Cancelled,
        }
    }

    /// The cause for an error of the runtime. Only what may be different next time is `lost`.
    pub(crate) fn from_error(code: ErrorCode) -> Self {
        match code {
            ErrorCode::ExecutorUnavailable
            | ErrorCode::ExecutorLost
            | ErrorCode::ExecutorFull
            | ErrorCode::StoreUnreachable
            | ErrorCode::Busy
            | ErrorCode::Internal => Self::Lost,
            ErrorCode::Cancelled => Self::Cancelled,
            _ => Self::Refused,
        }
    }
}

impl fmt::Display for FailureCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for FailureCause {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|cause| cause.as_str() == text);
        found.copied().ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|cause| cause.as_str()).collect();
            format!("{text:?} is not a cause of failure; known causes: {}", known.join(", "))
        })
    }
}
