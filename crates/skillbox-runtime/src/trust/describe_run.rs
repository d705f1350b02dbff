//! The texts and numbers that the audit log has of a run.

use std::collections::BTreeMap;

use skillbox_model::{
    Digest, Grants, LayerState, Limits, ProfileName, RunId, RunReport, RunRequest, SecretInjection, SecretName,
    SkillName, with_causes,
};
use skillbox_sandbox::Profile;
use skillbox_trust::{Decision, FileDigest, RunDescription, RunEnd};

use crate::RunError;
use crate::ended_run::command_text;

/// What is known of a run when it starts.
pub(crate) struct RunParts<'a> {
    pub(crate) run_id: &'a RunId,
    pub(crate) request: &'a RunRequest,
    pub(crate) profile: &'a Profile,
    pub(crate) profile_digest: Option<Digest>,
    pub(crate) skill: &'a SkillName,
    pub(crate) digest: Digest,
    pub(crate) decision: &'a Decision,
    pub(crate) secrets: BTreeMap<SecretName, SecretInjection>,
    pub(crate) limits: &'a Limits,
    pub(crate) environment: Option<Digest>,
    pub(crate) inputs: Vec<FileDigest>,
}

/// The description of a run that is about to start.
pub(crate) fn describe_run(parts: RunParts<'_>) -> RunDescription {
    RunDescription {
        run_id: parts.run_id.clone(),
        request_id: None,
        skill: Some(parts.skill.clone()),
        digest: Some(parts.digest),
        approved_by: parts.decision.approved_by.clone(),
        command: command_text(parts.request),
        profile: parts.profile.name.clone(),
        profile_digest: parts.profile_digest,
        limits: Some(parts.limits.clone()),
        environment: parts.environment,
        grants: parts.decision.grants.clone(),
        secrets: parts.secrets,
        inputs: parts.inputs,
    }
}

/// The description of a run that was refused.
pub(crate) fn describe_denied_run(
    run_id: &RunId,
    request: &RunRequest,
    (skill, digest): (&SkillName, Digest),
    profile: &ProfileName,
) -> RunDescription {
    RunDescription {
        run_id: run_id.clone(),
        request_id: None,
        skill: Some(skill.clone()),
        digest: Some(digest),
        approved_by: None,
        command: command_text(request),
        profile: profile.clone(),
        profile_digest: None,
        limits: None,
        environment: None,
        grants: Grants::default(),
        secrets: BTreeMap::new(),
        inputs: Vec::new(),
    }
}

/// How a run ended. A run that failed because of skillbox has the code of its error.
pub(crate) fn describe_end(outcome: Result<&RunReport, &RunError>) -> RunEnd {
    let report = match outcome {
        Ok(report) => report,
        Err(error) => {
            return RunEnd {
                ended_by: error.code().as_str().to_owned(),
                detail: Some(with_causes(error)),
                ..RunEnd::default()
            };
        }
    };
    let not_enforced = report
        .enforcement
        .layers
        .iter()
        .filter_map(|(layer, state)| match state {
            LayerState::Enforced | LayerState::NotRequested => None,
            LayerState::Partial { reason } => Some(format!("{layer} (partial): {reason}")),
            LayerState::Absent { reason } => Some(format!("{layer}: {reason}")),
        });
    let outputs = report.output_files.iter().map(|file| FileDigest {
        name: file.name.clone(),
        sha256: Some(file.sha256),
    });
    RunEnd {
        ended_by: report.ended_by.as_str().to_owned(),
        exit_code: report.exit_code,
        duration_ms: report.duration_ms,
        cpu_ms: Some(report.usage.cpu_ms),
        peak_memory_bytes: report.usage.peak_memory_bytes,
        tier: format!("{:?}", report.enforcement.tier),
        not_enforced: not_enforced.collect(),
        outputs: outputs.collect(),
        network: None,
        detail: None,
    }
}
