//! One run, step by step: accept → freeze → decide → provide → workspace → stage → record → run → collect → save → report → record.
//!
//! `Runtime::run_steps` is the whole sequence. Each step takes the values of the steps before it and returns a new
//! one; no value is changed afterwards. Besides the result, only events leave the pipeline.

mod accept;
mod collection;
mod frozen_skills;
mod grant_access;
mod open_workspace;
mod stage;

use std::sync::Arc;
use std::time::Instant;

use skillbox_executor::job::{CollectionSpec, JobSpec};
use skillbox_executor::workspace::{Baseline, StagedInputs, StagedLink, Workspace};
use skillbox_executor::{CancelToken, EventSink, ExecutionResult, FilesToFetch, Redactor, RunParams, StagedJob};
use skillbox_model::{RunEvent, RunId, RunReport, RunRequest, SessionId};
use tracing::info_span;

use self::accept::RunSetup;
use self::collection::{apply_collection_defaults, collect_outputs};
use self::frozen_skills::FrozenSkills;
use self::grant_access::GrantedRun;
use self::open_workspace::record_baseline;
use crate::ended_run::{EndedRun, PhaseClock, PhaseDurations, RunOrigin};
use crate::export::{ExportDirectory, ExportTarget};
use crate::kept_output::{KeptOutput, take_files};
use crate::output_limits;
use crate::provide::ProvidedEnvironment;
use crate::report::{ReportParts, build_report};
use crate::run_id::new_run_id;
use crate::run_records::{CheckedRequest, StartedRun};
use crate::run_workspace::{Cleanup, RunWorkspace};
use crate::save::save_outputs;
use crate::secrets::{RunSecrets, redact_outputs, redact_report, redact_request, warn_about_files};
use crate::{RunError, Runtime, SkillDirKeep};

/// What the caller of a run provides: a session, an event listener and a cancel token.
pub struct RunContext<'a> {
    /// The session whose workspace the run uses; without one the workspace is removed after the result.
    pub session: Option<SessionId>,
    /// Receives the events of the run.
    pub events: EventSink<'a>,
    /// Cancels the run.
    pub cancel: CancelToken,
    /// A directory of the host to which collected files are also written in full. If the request names no globs, all
    /// files of `out/` are collected.
    pub export: Option<ExportTarget>,
    /// Where the run came from, for its log event.
    pub origin: RunOrigin,
    /// Whether [`CompletedRun::files`] contains the collected files, open.
    pub keep_files: bool,
}

/// A run that is over.
#[derive(Debug)]
pub struct CompletedRun<'r> {
    /// The result.
    pub report: RunReport,
    /// The files that could not be written to [`RunContext::export`]; the warnings of the report list them too.
    pub export_failures: Vec<String>,
    /// How long each phase took.
    pub phases: PhaseDurations,
    /// The collected files, if the caller asked for them. They stay readable after the workspace is removed.
    pub files: Vec<KeptOutput>,
    /// The pending clean-up.
    pub cleanup: Cleanup<'r>,
}

/// A job that is ready to run.
struct ReadyJob {
    skills: FrozenSkills,
    environment: ProvidedEnvironment,
    staged: StagedInputs,
    workspace: RunWorkspace,
    /// The files of the workspace before the run.
    baseline: Baseline,
    export: Option<ExportDirectory>,
    keep_files: bool,
    /// Warnings of the steps before.
    warnings: Vec<String>,
    /// The durations of the steps before.
    phases: PhaseDurations,
    /// The secrets of the run.
    secrets: RunSecrets,
}

/// What a sandbox gets besides its workspace.
struct RunContent<'a> {
    skills: FrozenSkills,
    secrets: &'a RunSecrets,
    environment: &'a ProvidedEnvironment,
    links: Vec<StagedLink>,
}

impl Runtime {
    /// Runs one request. An error means that skillbox refused or failed; a failing script is a report.
    pub fn run(&self, request: &RunRequest, context: RunContext<'_>) -> Result<RunReport, RunError> {
        Ok(self.run_with_id(new_run_id(), request, context)?.report)
    }

    /// Runs one request under an id from [`new_run_id`] that the caller may have published already. The returned value
    /// holds the clean-up, for callers that send the result first.
    pub fn run_with_id(
        &self,
        run_id: RunId,
        request: &RunRequest,
        context: RunContext<'_>,
    ) -> Result<CompletedRun<'_>, RunError> {
        let started = Instant::now();
        let (session, origin) = (context.session.clone(), context.origin.clone());
        let registered = self.register_run(&run_id, request, session.as_ref(), &context.cancel);
        let mut redactor = Redactor::default();
        let outcome = self.run_steps(run_id.clone(), request, context, &mut redactor);
        let request = &*redact_request(request, &redactor);
        let mut outcome = outcome.map_err(|error| error.without_values(&redactor));
        let result = outcome
            .as_mut()
            .map(|completed| &mut completed.report)
            .map_err(|error| &*error);
        self.keep_run(registered, request, result);
        let ended = EndedRun {
            run_id: &run_id,
            tenant: self.tenant.as_ref(),
            session: session.as_ref(),
            request,
            origin: &origin,
            duration: started.elapsed(),
            outcome: match &outcome {
                Ok(completed) => Ok((&completed.report, completed.phases)),
                Err(error) => Err(error),
            },
        };
        ended.log();
        self.observer.observe(&ended);
        outcome
    }

    /// The sequence of one run. Sets `redactor` as soon as the values of the run's secrets are known.
    fn run_steps(
        &self,
        run_id: RunId,
        request: &RunRequest,
        context: RunContext<'_>,
        redactor: &mut Redactor,
    ) -> Result<CompletedRun<'_>, RunError> {
        let RunContext {
            session,
            mut events,
            cancel,
            export,
            keep_files,
            origin,
        } = context;
        let mut clock = PhaseClock::start();
        let catalog = self.catalog();
        let (spec, setup) = self.accept(run_id.clone(), request, session, cancel, &catalog)?;
        let export = export.as_ref().map(ExportDirectory::open).transpose()?;
        events.emit(|| RunEvent::Accepted {
            run_id: spec.run_id.clone(),
        });
        let accept = clock.lap();
        let skills = self.freeze_skills(&spec, &catalog, &setup.cancel)?;
        let freeze = clock.lap();
        let checked = CheckedRequest {
            run_id: &run_id,
            request,
            profile: setup.profile,
            catalog: &catalog,
            request_id: origin.request_id.as_deref(),
        };
        let decision = self.decide_all(&checked, &skills.main, &skills.others)?;
        let GrantedRun {
            spec,
            setup,
            secrets,
            warnings,
        } = self.grant_access(request, spec, setup, &decision.decision)?;
        redactor.clone_from(&secrets.redactor);
        let checked = CheckedRequest {
            request: &redact_request(request, redactor),
            profile: setup.profile,
            ..checked
        };
        let target = (setup.executor, setup.profile);
        let environment = self.provide_environment(&spec, target, &skills.main.1, &setup.cancel, &mut events)?;
        let (run_workspace, limits) = self.open_workspace(&spec, &setup, (&skills.main.0, skills.main.1.digest()))?;
        let spec = JobSpec {
            collection: {
                let completed = apply_collection_defaults(spec.collection, &spec.skill, export.is_some());
                CollectionSpec {
                    keep_open: completed.keep_open || keep_files,
                    ..completed
                }
            },
            limits,
            ..spec
        };
        let baseline = record_baseline(&setup, run_workspace.workspace(), &spec.collection, &skills.main)?;
        let staged = self.stage(&spec, &setup, &checked, run_workspace.workspace())?;
        events.emit(|| RunEvent::Staged {
            inputs: staged.inputs.len(),
        });
        if let Some(locked) = &setup.session {
            locked.session.record_run()?;
        }
        let started = StartedRun {
            digest: skills.main.1.digest(),
            decision: &decision.decision,
            secrets: &secrets,
            limits: &spec.limits,
            environment: environment.report().map(|environment| environment.digest),
            inputs: &staged,
            workspace: run_workspace.workspace(),
            with_skills: &skills.others,
        };
        let recorded = self.record_start(&checked, &spec.skill, started)?;
        let job = ReadyJob {
            skills,
            environment,
            staged,
            workspace: run_workspace,
            baseline,
            export,
            keep_files,
            warnings: [decision.warnings, warnings].concat(),
            secrets,
            phases: PhaseDurations {
                accept,
                freeze,
                stage: clock.lap(),
                ..PhaseDurations::default()
            },
        };
        let outcome = self.complete(spec, &setup, job, clock, &mut events);
        let outcome = outcome.map_err(|error| error.without_values(redactor));
        self.record_end(recorded, outcome.as_ref().map(|completed| &completed.report))?;
        outcome
    }

    /// Runs a job whose start is recorded, and collects, saves and reports its results.
    fn complete<'r>(
        &'r self,
        spec: JobSpec,
        setup: &RunSetup<'r>,
        job: ReadyJob,
        mut clock: PhaseClock,
        events: &mut EventSink<'_>,
    ) -> Result<CompletedRun<'r>, RunError> {
        // In use until the outputs are collected, because changed files are compared with it.
        let snapshot = Arc::clone(&job.skills.main.1);
        let skill_digest = snapshot.digest();
        let StagedInputs {
            inputs,
            links,
            warnings,
        } = job.staged;
        let content = RunContent {
            skills: job.skills,
            secrets: &job.secrets,
            environment: &job.environment,
            links,
        };
        let execution = self.execute(&spec, setup, content, job.workspace.workspace(), events)?;
        let run = clock.lap();
        let collected = collect_outputs(job.workspace.workspace(), &spec.collection, &job.baseline);
        drop(snapshot);
        if setup.skill_dir_keep == SkillDirKeep::Run {
            job.workspace.discard_skill_changes();
        }
        // Collected files are open, so nothing below needs the workspace. It is released even if a step below fails.
        let cleanup = job.workspace.into_cleanup(setup.executor, &spec.limits);
        let mut outputs = redact_outputs(collected?, &job.secrets.redactor);
        let secret_warnings = warn_about_files(&mut outputs, &job.secrets.redactor);
        events.emit(|| RunEvent::Collected {
            files: outputs.files.len(),
        });
        let limit_warnings = output_limits::warnings(&outputs, &spec.collection, &self.settings.request_caps);
        let collect = clock.lap();
        let saved = {
            let _span = info_span!("artifact.save").entered();
            save_outputs(&self.artifacts, &setup.scope, &spec, &mut outputs, events)?
        };
        let export = job.export;
        let export_failures = export.map_or_else(Vec::new, |export| export.write(&mut outputs, &spec.collection.globs));
        let files = if job.keep_files {
            take_files(&mut outputs)
        } else {
            Vec::new()
        };
        let report = build_report(ReportParts {
            run_id: spec.run_id,
            skill: spec.skill.to_string(),
            skill_digest,
            executor: setup.executor.kind(),
            profile: setup.profile.name.to_string(),
            program: spec.invocation.program().map(str::to_owned),
            limits: spec.limits,
            max_wall: setup.profile.limits.wall_max,
            staged_inputs: inputs,
            execution,
            environment: job.environment.report(),
            outputs,
            saved: saved.files,
            secrets: job.secrets.injections(),
            warnings: [
                job.warnings,
                job.environment.warnings,
                warnings,
                limit_warnings,
                secret_warnings,
                saved.warnings,
                export_failures.clone(),
            ]
            .concat(),
        });
        let report = redact_report(report, &job.secrets.redactor);
        let phases = PhaseDurations {
            run,
            collect,
            save: clock.lap(),
            ..job.phases
        };
        Ok(CompletedRun {
            report,
            export_failures,
            files,
            phases,
            cleanup,
        })
    }

    fn execute(
        &self,
        spec: &JobSpec,
        setup: &RunSetup<'_>,
        content: RunContent<'_>,
        workspace: &Workspace,
        events: &mut EventSink<'_>,
    ) -> Result<ExecutionResult, RunError> {
        let _span = info_span!("workspace.run", run = %spec.run_id).entered();
        let host = &self.settings.host_environment;
        let profile_env = setup.profile.initial_environment(|name| host.get(name).cloned());
        let mount_points = self.freezer.store().open_mount_points(&content.skills.names())?;
        let skills = content.skills.into_list();
        let job = StagedJob::resolve(spec, mount_points, skills, content.links, workspace, profile_env)?
            .with_network(setup.network.clone())
            .with_secrets(content.secrets.variables(), content.secrets.redactor.clone())
            .with_skill_dir(setup.skill_dir);
        let job = match content.environment.mounts().map_err(RunError::State)? {
            Some(packages) => job.with_packages(packages),
            None => job,
        };
        let result = setup.executor.run(RunParams {
            spec,
            profile: setup.profile,
            job,
            workspace,
            files_to_fetch: match &setup.session {
                Some(_) => FilesToFetch::All,
                None => FilesToFetch::Matching(&spec.collection),
            },
            cancel: &setup.cancel,
            events,
        })?;
        Ok(result)
    }
}

impl std::fmt::Debug for RunContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunContext")
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}
