//! The answers of the spawner and of the child.

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::host::HostFacts;
use crate::plan::Step;

/// An answer from the spawner or from the child.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// The spawner is ready, and found these facts about the host.
    Facts(Box<HostFacts>),
    /// The workspace exists. Descriptor: its root directory.
    WorkspaceCreated,
    /// The child of the launch exists. Descriptors: its pidfd, the usage files whose bits are set in the mask, and the
    /// sockets that listen in its network namespace.
    Launched {
        pid: i32,
        usage_mask: u8,
        /// Whether the child was parked before the run. Such a child does not send `CommandStarted`.
        was_parked: bool,
    },
    /// A sandbox could not be parked before this launch. The launch itself is not affected.
    ParkingFailed(StepFailure),
    /// The command runs.
    CommandStarted,
    /// A preferred step failed, and the launch continues without it.
    PreferredStepFailed(StepFailure),
    /// The request failed. A failed launch names the step of the plan.
    Failed(StepFailure),
    /// Every step succeeded, but the command could not be executed.
    CommandNotExecuted { errno: i32 },
    /// The command ended. The status is encoded as in wait(2).
    CommandEnded { status: i32 },
    /// Every process of the sandbox is dead and reaped.
    SandboxReaped(SandboxUsage),
}

/// The failure of a step, or of work outside the steps of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StepFailure {
    /// The number of the step; 0 for work that belongs to no step.
    pub step: u16,
    /// The operation that failed, worded to follow "cannot".
    pub what: String,
    /// The errno.
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
    /// The peak memory use, in bytes.
    pub peak_memory: Option<u64>,
}
