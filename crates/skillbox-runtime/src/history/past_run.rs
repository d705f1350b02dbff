//! One run in the history.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skillbox_model::{Digest, ErrorBody, OutputFile, RunId, RunReport, SessionId, TenantName};

/// Whether a run runs, and how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// It waits in the queue of a server.
    Queued,
    /// It has not ended.
    Running,
    /// It ended, whatever the exit code of the script.
    Ended,
    /// skillbox refused it or failed.
    Refused,
    /// Its process died.
    Lost,
}

/// A run with its report, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PastRun {
    /// The id.
    pub run_id: RunId,
    /// How it ended.
    pub status: RunStatus,
    /// The skill.
    pub skill: String,
    /// The tenant of a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantName>,
    /// The session whose workspace it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The command line.
    pub command: String,
    /// The start, in milliseconds since 1970.
    pub started_ms: u64,
    /// The end, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// The report, without the content of files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<RunReport>,
    /// Why skillbox refused it or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
}

/// The most important facts of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    /// The id.
    pub run_id: RunId,
    /// How it ended.
    pub status: RunStatus,
    /// The skill.
    pub skill: String,
    /// The tenant of a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantName>,
    /// The session whose workspace it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The command line.
    pub command: String,
    /// The start, in milliseconds since 1970.
    pub started_ms: u64,
    /// The end, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// What ended the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<String>,
    /// The exit code of the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The time of the run in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The digest of the skill that ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill_digest: Option<Digest>,
    /// The code of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
}

/// The fields of a stored run that a summary needs. Skipping the others is faster than parsing them.
#[derive(Deserialize)]
pub(super) struct StoredSummary {
    run_id: RunId,
    status: RunStatus,
    skill: String,
    #[serde(default)]
    tenant: Option<TenantName>,
    #[serde(default)]
    session: Option<SessionId>,
    command: String,
    started_ms: u64,
    #[serde(default)]
    ended_ms: Option<u64>,
    #[serde(default)]
    report: Option<StoredReport>,
    #[serde(default)]
    error: Option<StoredError>,
}

#[derive(Deserialize)]
struct StoredReport {
    ended_by: String,
    exit_code: Option<i32>,
    duration_ms: u64,
    skill_digest: Digest,
}

#[derive(Deserialize)]
struct StoredError {
    code: String,
}

impl From<StoredSummary> for RunSummary {
    fn from(stored: StoredSummary) -> Self {
        let (ended_by, exit_code, duration_ms, skill_digest) = match stored.report {
            Some(report) => (
                Some(report.ended_by),
                report.exit_code,
                Some(report.duration_ms),
                Some(report.skill_digest),
            ),
            None => (None, None, None, None),
        };
        Self {
            run_id: stored.run_id,
            status: stored.status,
            skill: stored.skill,
            tenant: stored.tenant,
            session: stored.session,
            command: stored.command,
            started_ms: stored.started_ms,
            ended_ms: stored.ended_ms,
            ended_by,
            exit_code,
            duration_ms,
            skill_digest,
            error_code: stored.error.map(|error| error.code),
        }
    }
}

impl RunSummary {
    /// A run of which nothing else is known. Its id contains its start.
    pub fn new(run_id: RunId, status: RunStatus, skill: String) -> Self {
        // The first 48 bits of a UUID of version 7 are the time in milliseconds.
        let start = run_id
            .as_str()
            .get(..12)
            .and_then(|hex| u64::from_str_radix(hex, 16).ok());
        Self {
            started_ms: start.unwrap_or_default(),
            run_id,
            status,
            skill,
            tenant: None,
            session: None,
            command: String::new(),
            ended_ms: None,
            ended_by: None,
            exit_code: None,
            duration_ms: None,
            skill_digest: None,
            error_code: None,
        }
    }

    /// Whether the command did not end with exit code 0.
    pub fn is_failed(&self) -> bool {
        match self.status {
            RunStatus::Queued | RunStatus::Running => false,
            RunStatus::Ended => self.exit_code != Some(0),
            RunStatus::Refused | RunStatus::Lost => true,
        }
    }
}

/// The report without the content of files.
pub(super) fn without_content(report: &RunReport) -> RunReport {
    let strip = |file: &OutputFile| OutputFile {
        content: None,
        ..file.clone()
    };
    RunReport {
        output_files: report.output_files.iter().map(strip).collect(),
        primary_output: report.primary_output.as_ref().map(strip),
        ..report.clone()
    }
}
