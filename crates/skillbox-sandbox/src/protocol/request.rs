//! The requests of the server to the spawner.

use std::borrow::Cow;
use std::io;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::codec::{decode, encode};
use crate::plan::{Command, Step};
use crate::spawner_options::SpawnerOptions;

/// A request to the spawner. The first descriptor of each message is the answer socket.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request<'a> {
    /// The first request. Answer: `Facts`, or `Failed`, and then the spawner exits.
    Initialize(SpawnerOptions),
    /// Create an empty tmpfs. Answer: `WorkspaceCreated`.
    CreateWorkspace { bytes: u64, inodes: u64 },
    /// Launch a command. Further descriptors: stdin, stdout, stderr, the workspace, the binds. Answers: `Launched` from
    /// the spawner and the answers of the child, in any order, then `SandboxReaped`.
    Launch {
        #[serde(borrow)]
        steps: EncodedSteps<'a>,
        command: Cow<'a, Command>,
    },
    /// Park a sandbox for launches with the same steps. No answer: a launch without a parked sandbox creates its own.
    Park {
        #[serde(borrow)]
        steps: EncodedSteps<'a>,
    },
    /// Change the maximum number of parked sandboxes. No answer.
    SetMaxParked { limit: u8 },
    /// A request that does not fit into a message, for example because of a long command line. The second descriptor is
    /// a memfd_create(2) file that contains the request.
    InMemfd { length: u64 },
}

/// Encoded steps, so that a receiver can recognise steps that it has decoded before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EncodedSteps<'a>(pub Cow<'a, [u8]>);

impl EncodedSteps<'_> {
    pub fn encode(steps: &[Step]) -> io::Result<EncodedSteps<'static>> {
        Ok(EncodedSteps(Cow::Owned(encode(steps)?)))
    }

    pub fn decode(&self) -> io::Result<Vec<Step>> {
        decode(&self.0)
    }
}

impl Serialize for EncodedSteps<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for EncodedSteps<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = <&'de [u8]>::deserialize(deserializer)?;
        Ok(Self(Cow::Borrowed(bytes)))
    }
}
