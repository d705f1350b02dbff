//! Answers of the spawner and of the child.

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::host::HostFacts;
use crate::plan::Step;

/// An answer from the spawner or from the child.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// The spawner is ready.
    Facts(Box<HostFacts>),
    /// The workspace exists. Descriptor: its directory.
    Workspace,
    /// The child exists. Descriptors: its pidfd, and the usage files that the mask names.
    Launched {
        pid: i32,
        usage_mask: u8,
        /// Whether the child was parked before the run. Such a child reports only failures and the end of the command.
        was_parked: bool,
    },
    /// A sandbox could not be parked earlier. The launch that receives this answer is not affected.
    ParkingFailed(StepFailure),
    /// The command runs.
    Started,
    /// A preferred step failed and the launch continues.
    Degraded(StepFailure),
    /// A step failed and the launch has ended.
    Failed(StepFailure),
    /// Every step succeeded, but the command could not be executed.
    NotExecuted { errno: i32 },
    /// The command ended, with the status as wait(2) encodes it.
    CommandEnded { status: i32 },
    /// Every process of the sandbox is dead and reaped.
    SandboxReaped(SandboxUsage),
}

/// A step that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StepFailure {
    /// Its number; 0 for work that belongs to no step.
    pub step: u16,
    /// The operation that failed, as the rest of a sentence that starts with "cannot".
    pub what: String,
    /// The error number of the kernel.
    pub errno: i32,
}

impl StepFailure {
    /// The failure of a step.
    pub fn of_step(step: &Step, what: &str, error: &io::Error) -> Self {
        Self {
            step: step.number,
            ..Self::outside_steps(what, error)
        }
    }

    /// The failure of work that belongs to no step.
    pub fn outside_steps(what: &str, error: &io::Error) -> Self {
        Self {
            step: 0,
            what: what.to_owned(),
            errno: error.raw_os_error().unwrap_or(libc::EIO),
        }
    }
}

/// The resources that a sandbox used.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SandboxUsage {
    /// CPU time of every process.
    pub cpu: Duration,
    /// The most memory in use at once, in bytes.
    pub peak_memory: Option<u64>,
}
