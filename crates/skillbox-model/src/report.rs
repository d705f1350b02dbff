//! The report of a run: its outcome, its files, and the isolation that was enforced.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Digest, EndedBy, Enforcement, ExecutorKind, NetworkReport, ResourceUsage, RunId, RunOutcome, SecretInjection,
    SecretName,
};

/// The result of `skill_run`, the same on every front end and every executor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunReport {
    /// The run.
    pub run_id: RunId,
    /// The skill.
    pub skill: String,
    /// Digest of the frozen skill that ran.
    pub skill_digest: Digest,
    /// The executor that ran it.
    pub executor: ExecutorKind,
    /// The sandbox profile.
    pub profile: String,
    /// Standard output of the command. If it exceeds the limit, its head and tail with a marker between them.
    pub stdout: String,
    /// Standard error of the command, in the same form.
    pub stderr: String,
    /// Whether part of stdout is omitted.
    pub stdout_truncated: bool,
    /// Whether part of stderr is omitted.
    pub stderr_truncated: bool,
    /// Number of bytes that the command wrote to stdout.
    pub stdout_bytes: u64,
    /// Number of bytes that the command wrote to stderr.
    pub stderr_bytes: u64,
    /// The exit code of the command; null if a signal, a limit or a timeout ended it.
    pub exit_code: Option<i32>,
    /// Whether the timeout ended the command.
    pub timed_out: bool,
    /// Wall-clock time from the start to the end of all processes, in milliseconds.
    pub duration_ms: u64,
    /// What ended the run.
    pub ended_by: EndedBy,
    /// The signal that ended the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Why the command failed, and the option or setting that changes it, if skillbox recognises the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The collected files: those that the run created or changed.
    pub output_files: Vec<OutputFile>,
    /// Files that matched a glob but were there before the run and did not change: the first hundred names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unchanged_files: Vec<String>,
    /// The file to read first, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary_output: Option<OutputFile>,
    /// Inputs that were placed in the workspace before the run.
    pub staged_inputs: Vec<StagedInput>,
    /// Files that were saved as artifacts.
    pub artifact_files: Vec<SavedArtifact>,
    /// Warnings for the caller.
    pub warnings: Vec<String>,
    /// Files that matched a glob but were not collected.
    pub refused_outputs: Vec<RefusedOutput>,
    /// Resources that the run used.
    pub usage: ResourceUsage,
    /// The packages that the run had; absent if it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<EnvironmentReport>,
    /// Connections to allowed hosts, and denials; absent if the run could reach no host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkReport>,
    /// The secrets of the run, and how it got each: `header` if the script held a placeholder, `env` if it held the value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<SecretName, SecretInjection>,
    /// Isolation that was enforced.
    pub enforcement: Enforcement,
}

impl RunReport {
    /// How the command ended.
    pub fn outcome(&self) -> RunOutcome {
        RunOutcome {
            ended_by: self.ended_by,
            exit_code: self.exit_code,
            signal: self.signal,
        }
    }
}

/// The packages of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EnvironmentReport {
    /// Digest over the packages, the interpreter, the platform and the options of the build.
    pub digest: Digest,
    /// Which languages have packages: `python`, `node` or `python+node`.
    pub kind: String,
    /// The number of installed packages.
    pub packages: u64,
    /// How long the build took, if this run needed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub built_ms: Option<u64>,
}

/// One collected file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutputFile {
    /// Path below the workspace.
    pub name: String,
    /// MIME type, detected from the content, otherwise from the extension.
    pub mime_type: String,
    /// Size of the whole file.
    pub size_bytes: u64,
    /// Digest of the whole file.
    pub sha256: Digest,
    /// The content, if it was requested: text, or base64 for a binary file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The encoding of `content`, if it is not plain text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<ContentEncoding>,
    /// Whether `content` is only the start of the file.
    pub truncated: bool,
    /// Reference for the inputs of later runs; over HTTP, the address of a file of a run without session.
    #[serde(rename = "ref")]
    pub reference: String,
    /// When the reference ends, in milliseconds since 1970, if it does not end with its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_unix_ms: Option<u64>,
}

/// The encoding of binary content in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContentEncoding {
    /// RFC 4648, standard alphabet, padded.
    Base64,
}

/// One input as it was staged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StagedInput {
    /// The source reference; that of an artifact includes the resolved version.
    pub from: String,
    /// Path below the workspace.
    pub to: String,
    /// Total size of its files.
    pub size_bytes: u64,
}

/// One file that was saved as an artifact.
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

/// One file that matched a glob but was not collected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedOutput {
    /// Path below the workspace.
    pub name: String,
    /// The reason.
    pub reason: String,
}
