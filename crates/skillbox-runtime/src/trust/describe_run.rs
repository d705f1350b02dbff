//! The texts and numbers that the audit log has of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use skillbox_executor::snapshot::Snapshot;
use skillbox_model::{
    Digest, Grants, LayerState, Limits, ProfileName, RunId, RunReport, RunRequest, SecretInjection, SecretName,
    SkillName, with_causes,
};
use skillbox_repository::content_digest;
use skillbox_sandbox::Profile;
use skillbox_trust::{Decision, FileDigest, RequestFacts, RunDescription, RunEnd};

use crate::RunError;
use crate::ended_run::full_command_text;

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
    pub(crate) request_id: Option<&'a str>,
    pub(crate) with_skills: &'a [(SkillName, Arc<Snapshot>)],
}

/// The description of a run that is about to start.
pub(crate) fn describe_run(parts: RunParts<'_>) -> RunDescription {
    RunDescription {
        run_id: parts.run_id.clone(),
        request_id: parts.request_id.map(str::to_owned),
        skill: Some(parts.skill.clone()),
        digest: Some(parts.digest),
        approved_by: parts.decision.approved_by.clone(),
        command: full_command_text(parts.request),
        profile: parts.profile.name.clone(),
        profile_digest: parts.profile_digest,
        limits: Some(parts.limits.clone()),
        environment: parts.environment,
        grants: parts.decision.grants.clone(),
        secrets: parts.secrets,
        inputs: parts.inputs,
        request: request_facts(parts.request, parts.with_skills),
    }
}

fn request_facts(request: &RunRequest, with_skills: &[(SkillName, Arc<Snapshot>)]) -> RequestFacts {
    let words = request.script.iter().chain(&request.args).chain(&request.argv);
    let to_digest = |(name, snapshot): &(SkillName, Arc<Snapshot>)| FileDigest {
        name: name.to_string(),
        sha256: Some(snapshot.digest()),
    };
    RequestFacts {
        sha256: request_digest(request),
        argv: words.cloned().collect(),
        cwd: request.cwd.clone(),
        env_names: request.env.keys().cloned().collect(),
        with_skills: with_skills.iter().map(to_digest).collect(),
    }
}

/// The digest of the request as JSON, whose fields have a fixed order. Standard input and values of variables are left
/// out: the digest of a short secret would tell it.
fn request_digest(request: &RunRequest) -> Option<Digest> {
    let bare = RunRequest {
        env: request.env.keys().map(|name| (name.clone(), String::new())).collect(),
        stdin: None,
        ..request.clone()
    };
    content_digest(serde_json::to_vec(&bare).ok()?.as_slice()).ok()
}

/// The description of a run that was refused.
pub(crate) fn describe_denied_run(
    run_id: &RunId,
    request: &RunRequest,
    (skill, digest): (&SkillName, Digest),
    profile: &ProfileName,
    request_id: Option<&str>,
) -> RunDescription {
    RunDescription {
        run_id: run_id.clone(),
        request_id: request_id.map(str::to_owned),
        skill: Some(skill.clone()),
        digest: Some(digest),
        approved_by: None,
        command: full_command_text(request),
        profile: profile.clone(),
        profile_digest: None,
        limits: None,
        environment: None,
        grants: Grants::default(),
        secrets: BTreeMap::new(),
        inputs: Vec::new(),
        request: request_facts(request, &[]),
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
