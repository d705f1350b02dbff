//! One line of `results.jsonl`: the report of a job, with the job's id and key.

use serde::{Deserialize, Serialize};
use skillbox_model::{Digest, ErrorBody, JobId, RunReport};

use crate::cause::FailureCause;

/// Whether a job ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobStatus {
    /// The command exited with 0 and every output file was written.
    Ok,
    /// Anything else.
    Failed,
}

impl JobStatus {
    /// The name in results.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
        }
    }
}

/// The result of one job, as it is written. The fields of the report follow those of the job.
#[derive(Serialize)]
pub(crate) struct ResultLine<'a> {
    pub id: &'a JobId,
    /// The digest of everything that determines the result; none if an input or the skill could not be read.
    pub key: Option<Digest>,
    pub status: JobStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<FailureCause>,
    /// Why the job failed, in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
    pub attempts: u32,
    #[serde(flatten)]
    pub report: Option<&'a RunReport>,
    /// Why there is no report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a ErrorBody>,
}

/// The fields of a result that a batch reads again.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ResultHead {
    /// The job.
    pub id: JobId,
    /// Its key.
    pub key: Option<Digest>,
    /// Whether it ended well.
    pub status: JobStatus,
    /// Why it failed.
    #[serde(default)]
    pub cause: Option<FailureCause>,
    /// Why it failed, in one line.
    #[serde(default)]
    pub reason: Option<String>,
    /// The number of attempts.
    pub attempts: u32,
    /// The duration of the last attempt.
    #[serde(default)]
    pub duration_ms: Option<u64>,
}

impl ResultLine<'_> {
    /// The line, with its line break.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).unwrap_or_else(|error| unreachable!("a report has text keys: {error}"));
        line.push(b'\n');
        line
    }
}
