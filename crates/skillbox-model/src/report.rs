//! The one answer of a run: what happened, what came back, and what was enforced.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Digest, EndedBy, Enforcement, ExecutorKind, Outcome, RunId, Usage};

/// The result of `skill_run`, the same on every front door and every executor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunReport {
    /// The run.
    pub run_id: RunId,
    /// The skill.
    pub skill: String,
    /// Digest of the frozen skill that ran.
    pub skill_digest: Digest,
    /// Where it ran.
    pub executor: ExecutorKind,
    /// The sandbox profile in force.
    pub profile: String,
    /// What the command wrote to standard output: head and tail around a mark once over the cap.
    pub stdout: String,
    /// What the command wrote to standard error, kept likewise.
    pub stderr: String,
    /// Whether something of stdout was left out.
    pub stdout_truncated: bool,
    /// Whether something of stderr was left out.
    pub stderr_truncated: bool,
    /// All bytes the command wrote to stdout.
    pub stdout_bytes: u64,
    /// All bytes the command wrote to stderr.
    pub stderr_bytes: u64,
    /// The command's own exit code; null when a signal, a limit or a deadline ended it.
    pub exit_code: Option<i32>,
    /// Whether the deadline ended it.
    pub timed_out: bool,
    /// Wall-clock time from start to the death of everything, in milliseconds.
    pub duration_ms: u64,
    /// What ended it.
    pub ended_by: EndedBy,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// The collected files.
    pub output_files: Vec<OutputFile>,
    /// The file a reader should look at first, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary_output: Option<OutputFile>,
    /// What was placed in the workspace before the run.
    pub staged_inputs: Vec<StagedInput>,
    /// Files stored as artifacts.
    pub artifact_files: Vec<SavedArtifact>,
    /// What the caller should know.
    pub warnings: Vec<String>,
    /// Files that matched but were not taken.
    pub refused_outputs: Vec<RefusedOutput>,
    /// What the run used.
    pub usage: Usage,
    /// What was enforced.
    pub enforcement: Enforcement,
}

impl RunReport {
    /// The end of the command, as the exit code table needs it.
    pub fn outcome(&self) -> Outcome {
        Outcome {
            ended_by: self.ended_by,
            exit_code: self.exit_code,
            signal: self.signal,
        }
    }
}

/// One collected file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutputFile {
    /// Path below the workspace.
    pub name: String,
    /// By content, then by extension.
    pub mime_type: String,
    /// Size of the whole file.
    pub size_bytes: u64,
    /// Digest of the whole file.
    pub sha256: String,
    /// The content, where it was asked for and is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// How `content` is written, when it is not plain text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<ContentEncoding>,
    /// Whether `content` is only the beginning of the file.
    pub truncated: bool,
    /// A reference that later inputs can use.
    #[serde(rename = "ref")]
    pub reference: String,
}

/// How binary content is written into JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContentEncoding {
    /// RFC 4648, standard alphabet, padded.
    Base64,
}

/// One input as it was placed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StagedInput {
    /// The source, artifacts with the version that was resolved.
    pub from: String,
    /// Path below the workspace.
    pub to: String,
    /// Bytes of all its files.
    pub size_bytes: u64,
}

/// One file stored as an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SavedArtifact {
    /// The artifact's name.
    pub name: String,
    /// Its version, from 0.
    pub version: u64,
    /// `artifact://name@version`.
    #[serde(rename = "ref")]
    pub reference: String,
}

/// One file that matched a glob and was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedOutput {
    /// Path below the workspace.
    pub name: String,
    /// Why not.
    pub reason: String,
}
