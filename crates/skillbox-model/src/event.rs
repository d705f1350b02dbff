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

/// A piece of output: the bytes themselves in the process, a text with invalid UTF-8 replaced on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct OutputBytes(pub Vec<u8>);

impl From<String> for OutputBytes {
    fn from(text: String) -> Self {
        Self(text.into_bytes())
    }
}

impl From<OutputBytes> for String {
    fn from(bytes: OutputBytes) -> Self {
        String::from_utf8_lossy(&bytes.0).into_owned()
    }
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
    /// The sandbox has its orders, and the command starts. A refusal can still follow, where the sandbox finds only then
    /// that it cannot be started as asked, in a working directory that is not there for one.
    Started,
    /// The command wrote something.
    Output {
        /// Where.
        stream: Stream,
        /// What, byte for byte; a text with replacements on the wire.
        text: OutputBytes,
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
