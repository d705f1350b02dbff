//! The steps of a run that decide and record: whether its skills may run, its audit records, and its history.

use std::io::Read;
use std::sync::Arc;

use skillbox_executor::CancelToken;
use skillbox_executor::snapshot::Snapshot;
use skillbox_executor::workspace::{StagedInputs, Workspace};
use skillbox_loader::SkillHooks;
use skillbox_model::{Digest, Limits, RelPath, RunId, RunReport, RunRequest, SessionId, SkillName, with_causes};
use skillbox_repository::{Catalog, MAX_SKILL_MD_BYTES, SkillEntry, frontmatter_json};
use skillbox_sandbox::Profile;
use skillbox_trust::{AuditEvent, AuditRun, Decision};

use crate::ended_run::command_text;
use crate::history::{HistoryError, RegisteredRun, RunStart};
use crate::run_id::new_run_id;
use crate::secrets::RunSecrets;
use crate::trust::{
    HostGrants, RunParts, SkillDecision, describe_denied_run, describe_end, describe_run, digest_inputs,
};
use crate::{RunError, Runtime};

/// A request whose skills are checked.
pub(crate) struct CheckedRequest<'a> {
    pub(crate) run_id: &'a RunId,
    pub(crate) request: &'a RunRequest,
    pub(crate) profile: &'a Profile,
    pub(crate) catalog: &'a Catalog,
    pub(crate) request_id: Option<&'a str>,
}

/// What is known of a run only when everything is ready for it.
pub(crate) struct StartedRun<'a> {
    pub(crate) digest: Digest,
    pub(crate) decision: &'a Decision,
    pub(crate) secrets: &'a RunSecrets,
    pub(crate) limits: &'a Limits,
    /// The digest of the packages that the run has.
    pub(crate) environment: Option<Digest>,
    pub(crate) inputs: &'a StagedInputs,
    pub(crate) workspace: &'a Workspace,
    pub(crate) with_skills: &'a [(SkillName, Arc<Snapshot>)],
}

impl Runtime {
    /// Decides whether every frozen skill may run. The result is that of the skill that runs, with the warnings of all.
    pub(crate) fn decide_all(
        &self,
        checked: &CheckedRequest<'_>,
        main: &(SkillName, Arc<Snapshot>),
        others: &[(SkillName, Arc<Snapshot>)],
    ) -> Result<SkillDecision, RunError> {
        let mut decided = self.decide_skill(checked, main.0.as_str(), &main.1)?;
        for (name, snapshot) in others {
            let other = self.decide_skill(checked, name.as_str(), snapshot)?;
            decided.warnings.extend(other.warnings);
        }
        Ok(decided)
    }

    /// Decides whether one frozen skill may be used. A refusal is recorded.
    pub(crate) fn decide_skill(
        &self,
        checked: &CheckedRequest<'_>,
        name: &str,
        snapshot: &Snapshot,
    ) -> Result<SkillDecision, RunError> {
        let entry = self.find_skill(checked.catalog, name, "skill")?;
        let digest = snapshot.digest();
        // A request can name only profiles that the host allows, and asks for nothing else beyond its confinement.
        let granted = HostGrants {
            configured: self.configured_grants(entry, &digest),
            one_call: self.call_grants(),
        };
        let decided = self.trust.decide(entry, &digest, &granted);
        if let Err(RunError::Refused { refusal, .. }) = &decided
            && self.trust.is_recording()
        {
            let profile = &checked.profile.name;
            let run = describe_denied_run(
                checked.run_id,
                checked.request,
                (entry.name(), digest),
                profile,
                checked.request_id,
            );
            let event = AuditEvent::RunDenied(&run, refusal.code(), &refusal.to_string());
            let caller = self.trust.caller(self.tenant.as_ref());
            self.trust.audit_log()?.append(&caller, &event)?;
        }
        decided
    }

    /// Refuses the command of a hook that is not in the version of the skill that may run now. Agents keep the hooks of the
    /// version that they loaded, which may be one that nobody accepted.
    pub(crate) fn check_hook_command(
        &self,
        request: &RunRequest,
        command: &str,
        cancel: Option<&CancelToken>,
    ) -> Result<(), RunError> {
        if self.trust.settings().policy.accepts_every_version() {
            return Ok(());
        }
        let catalog = self.catalog();
        let entry = self.find_skill(&catalog, &request.skill, "skill")?;
        let is_cancelled = || cancel.is_some_and(CancelToken::is_cancelled);
        let snapshot = self.freezer.freeze(entry, &is_cancelled)?;
        let checked = CheckedRequest {
            run_id: &new_run_id(),
            request,
            profile: self.resolve_profile(None)?,
            catalog: &catalog,
            request_id: None,
        };
        self.decide_skill(&checked, &request.skill, &snapshot)?;
        let hooks = read_skill_md(entry, &snapshot).and_then(|text| frontmatter_json(&text)?.remove("hooks"));
        if SkillHooks::parse(&hooks.unwrap_or_default()).has_command(command) {
            return Ok(());
        }
        Err(RunError::StaleHook {
            skill: entry.name().clone(),
        })
    }

    /// Records that the run is about to start. If this fails, the run must not start.
    pub(crate) fn record_start(
        &self,
        checked: &CheckedRequest<'_>,
        skill: &SkillName,
        started: StartedRun<'_>,
    ) -> Result<Option<AuditRun>, RunError> {
        if !self.trust.is_recording() {
            return Ok(None);
        }
        let inputs = digest_inputs(&started.inputs.inputs, &started.inputs.links, started.workspace);
        let run = describe_run(RunParts {
            run_id: checked.run_id,
            request: checked.request,
            profile: checked.profile,
            profile_digest: self.trust.profile_digest(checked.profile),
            skill,
            digest: started.digest,
            decision: started.decision,
            secrets: started.secrets.injections(),
            limits: started.limits,
            environment: started.environment,
            inputs: inputs.map_err(RunError::InputDigest)?,
            request_id: checked.request_id,
            with_skills: started.with_skills,
        });
        let caller = self.trust.caller(self.tenant.as_ref());
        Ok(Some(self.trust.audit_log()?.start_run(&caller, &run)?))
    }

    /// Records how a run ended, whether it has a report or skillbox failed.
    pub(crate) fn record_end(
        &self,
        recorded: Option<AuditRun>,
        outcome: Result<&RunReport, &RunError>,
    ) -> Result<(), RunError> {
        match recorded {
            Some(run) => Ok(self.trust.audit_log()?.end_run(run, &describe_end(outcome))?),
            None => Ok(()),
        }
    }

    /// Lists the run as running, so that every process can see and kill it.
    pub(crate) fn register_run(
        &self,
        run_id: &RunId,
        request: &RunRequest,
        session: Option<&SessionId>,
        cancel: &CancelToken,
    ) -> Result<Option<RegisteredRun>, HistoryError> {
        self.history.start(RunStart {
            run_id,
            skill: &request.skill,
            tenant: self.tenant.as_ref(),
            session,
            command: command_text(request),
            cancel,
        })
    }

    /// Keeps the result of a run. A history that cannot be written is a warning: the audit log has the run.
    pub(crate) fn keep_run(
        &self,
        registered: Result<Option<RegisteredRun>, HistoryError>,
        request: &RunRequest,
        outcome: Result<&mut RunReport, &RunError>,
    ) {
        let stored = registered.and_then(|registered| match (registered, &outcome) {
            (None, _) => Ok(()),
            (Some(run), Ok(report)) => self.history.end(run, command_text(request), Ok(report)),
            (Some(run), Err(error)) => self.history.end(run, command_text(request), Err(error.body())),
        });
        let Err(error) = stored else { return };
        let warning = format!("the run is not in the history: {}", with_causes(&error));
        tracing::warn!(warning);
        if let Ok(report) = outcome {
            report.warnings.push(warning);
        }
    }
}

/// The text of the frozen SKILL.md; `None` if it cannot be read.
fn read_skill_md(entry: &SkillEntry, snapshot: &Snapshot) -> Option<String> {
    let path = RelPath::parse(entry.skill_md_name().to_str()?).ok()?;
    let mut text = String::new();
    let file = snapshot.open_file(&path).ok()?;
    file.take(MAX_SKILL_MD_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}
