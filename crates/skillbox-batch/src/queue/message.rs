//! What travels through the queue and what is stored beside it. Content travels through the object store.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use skillbox_model::{Digest, JobId, RunRequest, SkillName};

use crate::retry::RetryPolicy;

/// The version of all forms here. A worker refuses others.
pub(super) const FORMAT_VERSION: u32 = 1;
/// The largest message. The default of servers is 1 MiB.
pub(super) const MAX_MESSAGE_BYTES: usize = 256 << 10;
/// The largest manifest: the output of a job in it is limited.
pub(super) const MAX_MANIFEST_BYTES: u64 = 64 << 20;
/// The largest record of a batch.
pub(super) const MAX_RECORD_BYTES: u64 = 16 << 20;

/// One job on the queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JobMessage {
    pub version: u32,
    /// The submission with the rules of this job.
    pub submission: u64,
    /// How long the worker may be silent before the job goes to another.
    pub ack_wait_ms: u64,
    pub id: JobId,
    pub key: Digest,
    /// The request. The sources of inputs in `contents` are empty.
    pub request: RunRequest,
    pub contents: Vec<InputContent>,
}

impl JobMessage {
    pub fn job(&self) -> ListedJob {
        ListedJob {
            id: self.id.clone(),
            key: self.key,
        }
    }
}

/// An input whose content is in the object store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InputContent {
    /// The position of the input in the request.
    pub index: usize,
    /// The reference as the report shows it.
    pub display_text: String,
    pub sha256: Digest,
    pub size: u64,
    pub is_executable: bool,
}

/// What one `batch run` submitted. Jobs of the same submission share it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    pub(super) version: u32,
    /// The number of jobs.
    pub jobs: usize,
    /// The content with one [`ListedJob`] in each line.
    pub(super) list: Digest,
    pub(super) skills: BTreeMap<SkillName, SkillContent>,
    pub(super) retry: RetryPolicy,
}

/// A skill that travels with a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SkillContent {
    /// The digest of the skill.
    pub digest: Digest,
    /// The content with its archive.
    pub archive: Digest,
}

/// A job in the list of a submission.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ListedJob {
    /// The job.
    pub id: JobId,
    /// Its key.
    pub key: Digest,
}

/// The result of a job in the object store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub(super) version: u32,
    /// The worker that ran the job.
    pub worker: String,
    /// The line of `results.jsonl`.
    pub result: Value,
    /// The files of the job, whose content is in the object store.
    pub files: Vec<ManifestFile>,
}

/// A file of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestFile {
    /// The path below the directory of the job.
    pub name: String,
    /// The digest of its content.
    pub sha256: Digest,
    /// Its size.
    pub size: u64,
}

pub(super) fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_else(|error| unreachable!("all keys are text: {error}"))
}
