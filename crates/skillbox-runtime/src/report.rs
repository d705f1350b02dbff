//! Builds the report of a run from the results of all steps. Pure; it cannot fail.

use std::collections::BTreeMap;
use std::time::Duration;

use skillbox_executor::ExecutionResult;
use skillbox_executor::workspace::{CollectedFile, Outputs};
use skillbox_model::{
    Digest, EndedBy, EnvironmentReport, ExecutorKind, LayerState, Limits, OutputFile, RunId, RunReport,
    SecretInjection, SecretName, StagedInput, Tier,
};

use crate::hint::{FinishedRun, find_hint};
use crate::network::network_warnings;
use crate::save::SavedFile;

/// The results of the earlier steps.
pub(crate) struct ReportParts {
    pub run_id: RunId,
    pub skill: String,
    pub skill_digest: Digest,
    pub executor: ExecutorKind,
    pub profile: String,
    /// The program that the request names; none for a command line of a shell.
    pub program: Option<String>,
    pub limits: Limits,
    /// The largest timeout that the profile allows.
    pub max_wall: Duration,
    pub staged_inputs: Vec<StagedInput>,
    pub execution: ExecutionResult,
    /// The packages that the run had.
    pub environment: Option<EnvironmentReport>,
    pub outputs: Outputs,
    pub saved: Vec<SavedFile>,
    pub secrets: BTreeMap<SecretName, SecretInjection>,
    pub warnings: Vec<String>,
}

/// Builds the report.
pub(crate) fn build_report(parts: ReportParts) -> RunReport {
    let ExecutionResult {
        outcome,
        stdout,
        stderr,
        duration,
        usage,
        enforcement,
        network,
        warnings: run_warnings,
    } = parts.execution;
    let mut warnings = parts.warnings;
    warnings.extend(run_warnings);
    warnings.extend(network.iter().flat_map(network_warnings));
    for (name, captured) in [("stdout", &stdout), ("stderr", &stderr)] {
        if captured.has_replacements {
            warnings.push(format!("{name} is not valid UTF-8: invalid bytes are shown as U+FFFD"));
        }
    }
    // What is only partial at tier T0 is in `enforcement` alone: a container without user ids of its own, a workspace on a
    // disk.
    let has_absent_layer = enforcement
        .layers
        .values()
        .any(|state| matches!(state, LayerState::Absent { .. }));
    if enforcement.tier != Tier::T0 || has_absent_layer {
        warnings.extend(enforcement.shortfall());
    }
    if parts.outputs.unnamed_refusals > 0 {
        let summary = match parts.outputs.unnamed_refusals {
            1 => "1 more output was not collected".to_owned(),
            count => format!("{count} more outputs were not collected"),
        };
        warnings.push(summary);
    }
    let hint = find_hint(&FinishedRun {
        outcome,
        stderr: &stderr.text,
        program: parts.program.as_deref(),
        output_bytes: stdout.total_bytes + stderr.total_bytes,
        usage,
        limits: &parts.limits,
        max_wall: parts.max_wall,
        profile: &parts.profile,
        executor: parts.executor,
        enforcement: &enforcement,
        reaches_hosts: network.is_some(),
    });
    warnings.extend(
        hint.iter()
            .filter(|hint| hint.is_missing_package)
            .map(|hint| hint.text.clone()),
    );
    let output_files: Vec<OutputFile> = parts
        .outputs
        .files
        .into_iter()
        .map(|file| output_file(file, &parts.saved))
        .collect();
    RunReport {
        run_id: parts.run_id,
        skill: parts.skill,
        skill_digest: parts.skill_digest,
        executor: parts.executor,
        profile: parts.profile,
        stdout_truncated: stdout.truncated,
        stderr_truncated: stderr.truncated,
        stdout_bytes: stdout.total_bytes,
        stderr_bytes: stderr.total_bytes,
        stdout: stdout.text,
        stderr: stderr.text,
        exit_code: outcome.exit_code,
        timed_out: outcome.ended_by == EndedBy::Timeout,
        duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        ended_by: outcome.ended_by,
        signal: outcome.signal,
        hint: hint.map(|hint| hint.text),
        primary_output: primary_output(&output_files),
        output_files,
        unchanged_files: parts.outputs.unchanged,
        staged_inputs: parts.staged_inputs,
        artifact_files: parts.saved.into_iter().map(|saved| saved.artifact).collect(),
        warnings,
        refused_outputs: parts.outputs.refused,
        usage,
        environment: parts.environment,
        network,
        secrets: parts.secrets,
        enforcement,
    }
}

fn output_file(file: CollectedFile, saved: &[SavedFile]) -> OutputFile {
    let artifact = saved
        .iter()
        .find(|saved| saved.name == file.name)
        .map(|saved| &saved.artifact);
    let name = file.name.to_string();
    OutputFile {
        reference: artifact.map_or_else(|| format!("workspace://{name}"), |artifact| artifact.reference.clone()),
        name,
        mime_type: file.mime_type,
        size_bytes: file.size_bytes,
        sha256: file.digest,
        content: file.content,
        encoding: file.encoding,
        truncated: file.truncated,
        expires_unix_ms: None,
    }
}

/// The first file with text content; without one, the only file.
fn primary_output(files: &[OutputFile]) -> Option<OutputFile> {
    let first_text = files
        .iter()
        .find(|file| file.content.is_some() && file.encoding.is_none());
    let only = if files.len() == 1 { files.first() } else { None };
    first_text.or(only).cloned()
}
