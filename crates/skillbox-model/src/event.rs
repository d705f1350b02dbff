//! Events of a run.

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

/// A chunk of output: the exact bytes in memory; in JSON a string, with invalid UTF-8 replaced.
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

/// One event of a run. All front ends receive the same events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEvent {
    /// The request was accepted.
    Accepted {
        /// The run.
        run_id: RunId,
    },
    /// The packages of the skill are not installed yet, and are installed now.
    BuildingEnvironment {
        /// The number of packages that the skill declares.
        declared: usize,
    },
    /// The skill and the inputs are in place.
    Staged {
        /// The number of inputs.
        inputs: usize,
    },
    /// The sandbox starts the command. The run can still be refused, for example if the sandbox finds that the working
    /// directory does not exist.
    Started,
    /// The command wrote output.
    Output {
        /// The stream.
        stream: Stream,
        /// The exact bytes; in JSON a string, with invalid UTF-8 replaced.
        #[serde(rename = "text")]
        bytes: OutputBytes,
        /// Offset of the first byte in the stream.
        offset: u64,
    },
    /// All processes of the sandbox have ended.
    Ended {
        /// What ended the run.
        ended_by: EndedBy,
    },
    /// The outputs are collected.
    Collected {
        /// The number of files.
        files: usize,
    },
    /// A file was saved as an artifact.
    Saved {
        /// The artifact's name.
        name: String,
        /// The artifact's version.
        version: u64,
    },
}
