//! Builds the report of a run from the results of all steps. Pure; it cannot fail.

use skillbox_executor::ExecutionResult;
use skillbox_executor::workspace::{CollectedFile, Outputs};
use skillbox_model::{Digest, EndedBy, ExecutorKind, OutputFile, RunId, RunReport, StagedInput};

use crate::save::SavedFile;

/// The results of the earlier steps.
pub(crate) struct ReportParts {
    pub run_id: RunId,
    pub skill: String,
    pub skill_digest: Digest,
    pub executor: ExecutorKind,
    pub profile: String,
    pub staged_inputs: Vec<StagedInput>,
    pub execution: ExecutionResult,
    pub outputs: Outputs,
    pub saved: Vec<SavedFile>,
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
        warnings: run_warnings,
    } = parts.execution;
    let mut warnings = parts.warnings;
    warnings.extend(run_warnings);
    for (name, captured) in [("stdout", &stdout), ("stderr", &stderr)] {
        if captured.has_replacements {
            warnings.push(format!("{name} is not valid UTF-8: invalid bytes are shown as U+FFFD"));
        }
    }
    if parts.outputs.unnamed_refusals > 0 {
        let summary = match parts.outputs.unnamed_refusals {
            1 => "1 more output was not collected".to_owned(),
            count => format!("{count} more outputs were not collected"),
        };
        warnings.push(summary);
    }
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
        primary_output: primary_output(&output_files),
        output_files,
        staged_inputs: parts.staged_inputs,
        artifact_files: parts.saved.into_iter().map(|saved| saved.artifact).collect(),
        warnings,
        refused_outputs: parts.outputs.refused,
        usage,
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
        sha256: file.digest.hex(),
        content: file.content,
        encoding: file.encoding,
        truncated: file.truncated,
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
