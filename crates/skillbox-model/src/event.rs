//! What happens during a run, as it happens.

use serde::{Deserialize, Serialize};

use crate::{EndedBy, RunId};

/// One of the two output streams of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// One step of a run. The only sideways exit of the pipeline; every renderer reads the same events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEvent {
    /// The request was accepted.
    Accepted {
        /// The run.
        run_id: RunId,
    },
    /// Skill and inputs are in place.
    Staged {
        /// How many inputs.
        inputs: usize,
    },
    /// The command has started.
    Started,
    /// The command wrote something.
    Output {
        /// Where.
        stream: Stream,
        /// What, with invalid UTF-8 replaced.
        text: String,
        /// Offset of its first byte in the stream.
        offset: u64,
    },
    /// Everything in the sandbox is dead.
    Ended {
        /// Why.
        ended_by: EndedBy,
    },
    /// The outputs are collected.
    Collected {
        /// How many files.
        files: usize,
    },
    /// A file became an artifact.
    Saved {
        /// Its name.
        name: String,
        /// Its version.
        version: u64,
    },
}
