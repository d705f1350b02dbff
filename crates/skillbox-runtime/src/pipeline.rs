//! One run, step by step: accept → freeze → decide → workspace → stage → record → run → collect → save → report → record.
//!
//! `Runtime::run_steps` is the whole sequence. Each step takes the values of the steps before it and returns a new
//! one; no value is changed afterwards. Besides the result, only events leave the pipeline.

use std::sync::Arc;
use std::time::Instant;

use skillbox_artifacts::Scope;
use skillbox_executor::job::{CollectionSpec, ExcessFileReporting, JobSpec, OutputGlobs, ProfileBounds, RequestError};
use skillbox_executor::snapshot::Snapshot;
use skillbox_executor::workspace::{
    Backing, Baseline, BaselineContent, OpenInput, Outputs, StagedInputs, StagedLink, StagingLimits, Workspace,
    collect, stage_inputs,
};
use skillbox_executor::{
    CancelToken, EventSink, ExecutionResult, Executor, FilesToFetch, NetworkAccess, RunParams, StagedJob,
};
use skillbox_model::{
    ByteSize, ErrorCode, ExecutorKind, InputMode, Layer, Limits, RunEvent, RunId, RunReport, RunRequest, SessionId,
    SkillName,
};
use skillbox_repository::Catalog;
use skillbox_sandbox::{Need, Profile, WorkspaceBacking};
use tracing::info_span;

use crate::ended_run::{EndedRun, PhaseClock, PhaseDurations, RunOrigin};
use crate::export::{ExportDirectory, ExportTarget};
use crate::inputs::InputSources;
use crate::kept_output::{KeptOutput, take_files};
use crate::network::{network_access, unused_grant_warning};
use crate::output_limits;
use crate::report::{ReportParts, build_report};
use crate::request_checks::{check_artifact_prefix, input_staging_error, refuse_links_to_sockets};
use crate::run_id::new_run_id;
use crate::run_records::{CheckedRequest, StartedRun};
use crate::run_workspace::{Cleanup, RunWorkspace};
use crate::save::save_outputs;
use crate::session::{NewWorkspace, OpenSession, Pins, RunLock, ScratchSession};
use crate::{RunError, Runtime};

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

/// What an accepted request resolves to, besides its [`JobSpec`].
struct RunSetup<'a> {
    profile: &'a Profile,
    executor: &'a Executor,
    scope: Scope,
    session: Option<LockedSession>,
    /// The hosts that the run may reach.
    network: NetworkAccess,
    cancel: CancelToken,
}

impl RunSetup<'_> {
    /// Whether a run without a session needs a workspace on the host's disk.
    fn needs_scratch_workspace(&self) -> bool {
        self.executor.kind() == ExecutorKind::Local && self.profile.workspace.backing == WorkspaceBacking::Disk
    }
}

impl RunSetup<'_> {
    /// What the workspace of a new session may be. A script without mounts of its own sees the paths of the host.
    fn new_workspace<'a>(&self, limits: &'a Limits) -> NewWorkspace<'a> {
        if self.has_own_mounts() {
            NewWorkspace::Limited(limits)
        } else {
            NewWorkspace::Directory
        }
    }

    /// Refuses a workspace that the profile cannot use.
    fn check_workspace(&self, workspace: &Workspace) -> Result<(), RequestError> {
        if self.has_own_mounts() || !matches!(workspace.backing(), Backing::Image { .. }) {
            return Ok(());
        }
        let message = "the workspace of this session is a file system of its own, which a profile without a mount \
                       namespace cannot reach";
        Err(
            RequestError::new("profile", ErrorCode::InvalidRequest, message.to_owned())
                .with_hint("use another session, or a profile with a mount namespace"),
        )
    }

    fn has_own_mounts(&self) -> bool {
        self.executor.kind() == ExecutorKind::Docker || self.profile.need(Layer::MountNamespace) != Need::Off
    }
}

/// A session that no other run can use until this value is dropped.
struct LockedSession {
    session: OpenSession,
    _lock: RunLock,
}

/// A job that is ready to run.
struct ReadyJob {
    skills: FrozenSkills,
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
}

/// The frozen skills of a run.
struct FrozenSkills {
    /// The skill that runs.
    main: (SkillName, Arc<Snapshot>),
    /// The skills mounted beside it.
    others: Vec<(SkillName, Arc<Snapshot>)>,
}

impl FrozenSkills {
    fn names(&self) -> Vec<&SkillName> {
        std::iter::once(&self.main)
            .chain(&self.others)
            .map(|(name, _)| name)
            .collect()
    }

    /// All skills, the one that runs first.
    fn into_list(self) -> Vec<(SkillName, Arc<Snapshot>)> {
        std::iter::once(self.main).chain(self.others).collect()
    }
}

/// The file of a session that stores its pinned artifact versions.
const PINS_FILE: &str = "pins.json";
/// Maximum number of files of `out/` that are listed when the request names no globs.
const DEFAULT_LISTED_FILES: usize = 20;

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
        let mut outcome = self.run_steps(run_id.clone(), request, context);
        let result = outcome
            .as_mut()
            .map(|completed| &mut completed.report)
            .map_err(|error| &*error);
        self.keep_run(registered, result);
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

    /// The sequence of one run.
    fn run_steps(
        &self,
        run_id: RunId,
        request: &RunRequest,
        context: RunContext<'_>,
    ) -> Result<CompletedRun<'_>, RunError> {
        let RunContext {
            session,
            mut events,
            cancel,
            export,
            keep_files,
            origin: _,
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
        };
        let decision = self.decide_all(&checked, &skills.main, &skills.others)?;
        let (run_workspace, limits) = self.open_workspace(&spec, &setup)?;
        let spec = JobSpec {
            collection: {
                let completed = apply_collection_defaults(spec.collection, export.is_some());
                CollectionSpec {
                    keep_open: completed.keep_open || keep_files,
                    ..completed
                }
            },
            limits,
            ..spec
        };
        let baseline = record_baseline(&setup, run_workspace.workspace(), &spec.collection)?;
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
            limits: &spec.limits,
            inputs: &staged,
            workspace: run_workspace.workspace(),
        };
        let recorded = self.record_start(&checked, &spec.skill, started)?;
        let job = ReadyJob {
            skills,
            staged,
            workspace: run_workspace,
            baseline,
            export,
            keep_files,
            warnings: decision.warnings,
            phases: PhaseDurations {
                accept,
                freeze,
                stage: clock.lap(),
                ..PhaseDurations::default()
            },
        };
        let outcome = self.complete(spec, &setup, job, clock, &mut events);
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
        let skill_digest = job.skills.main.1.digest();
        let StagedInputs {
            inputs,
            links,
            warnings,
        } = job.staged;
        let execution = self.execute(&spec, setup, job.skills, links, job.workspace.workspace(), events)?;
        let run = clock.lap();
        let collected = collect_outputs(job.workspace.workspace(), &spec.collection, &job.baseline);
        // Collected files are open, so nothing below needs the workspace. It is released even if a step below fails.
        let cleanup = job.workspace.into_cleanup(setup.executor, &spec.limits);
        let mut outputs = collected?;
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
            outputs,
            saved: saved.files,
            warnings: unused_grant_warning(setup.profile, &self.settings.granted_hosts)
                .into_iter()
                .chain(
                    [
                        job.warnings,
                        warnings,
                        limit_warnings,
                        saved.warnings,
                        export_failures.clone(),
                    ]
                    .concat(),
                )
                .collect(),
        });
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

    /// Checks the request against the catalog, the profile and the host's settings, then locks the session.
    fn accept(
        &self,
        run_id: RunId,
        request: &RunRequest,
        session: Option<SessionId>,
        cancel: CancelToken,
        catalog: &Catalog,
    ) -> Result<(JobSpec, RunSetup<'_>), RunError> {
        let profile = self.resolve_profile(request.profile.as_deref())?;
        let executor = self.find_executor(request.executor.unwrap_or(self.settings.default_executor))?;
        let network = network_access(profile, &self.settings.granted_hosts)?;
        refuse_network_in_container(executor, &network)?;
        let bounds = ProfileBounds {
            limits: profile.limits.default.clone(),
            max_wall: profile.limits.wall_max,
            caps: self.settings.request_caps,
        };
        let spec = JobSpec::parse(request, run_id, &bounds)?;
        check_artifact_prefix(request, &spec)?;
        self.find_skill(catalog, spec.skill.as_str(), "skill")?;
        for (index, name) in spec.with_skills.iter().enumerate() {
            self.find_skill(catalog, name.as_str(), &format!("with_skills[{index}]"))?;
        }
        let scope = session.clone().map_or(Scope::User, Scope::Session);
        let session = session.map(|id| self.lock_session(&id, &cancel)).transpose()?;
        let setup = RunSetup {
            profile,
            executor,
            scope,
            session,
            network,
            cancel,
        };
        Ok((spec, setup))
    }

    pub(crate) fn find_executor(&self, kind: ExecutorKind) -> Result<&Executor, RunError> {
        let executor = self.executors.iter().find(|executor| executor.kind() == kind);
        executor.ok_or_else(|| RunError::ExecutorNotConfigured {
            message: format!("the {kind} executor is not configured"),
            hint: "run `skillbox doctor` to see what this host can do".to_owned(),
        })
    }

    fn lock_session(&self, id: &SessionId, cancel: &CancelToken) -> Result<LockedSession, RunError> {
        let session = self.sessions.open_or_create(id)?;
        let lock = session.lock_run(self.settings.session_lock_timeout, || cancel.is_cancelled())?;
        Ok(LockedSession { session, _lock: lock })
    }

    fn freeze_skills(&self, spec: &JobSpec, catalog: &Catalog, cancel: &CancelToken) -> Result<FrozenSkills, RunError> {
        let _span = info_span!("workspace.stage.skill", skill = %spec.skill).entered();
        let freeze = |name: &SkillName, field: &str| -> Result<_, RunError> {
            Ok((name.clone(), self.freeze(catalog, name.as_str(), field, cancel)?))
        };
        let others = spec.with_skills.iter().enumerate();
        Ok(FrozenSkills {
            main: freeze(&spec.skill, "skill")?,
            others: others
                .map(|(index, name)| freeze(name, &format!("with_skills[{index}]")))
                .collect::<Result<_, _>>()?,
        })
    }

    /// Opens the workspace of the run, and returns it with the limits that apply in it.
    fn open_workspace(&self, spec: &JobSpec, setup: &RunSetup<'_>) -> Result<(RunWorkspace, Limits), RunError> {
        let _span = info_span!("workspace.create").entered();
        let limits = spec.limits.clone();
        let (run_workspace, limits) = match &setup.session {
            Some(locked) => {
                let workspace = locked.session.workspace(setup.new_workspace(&limits))?;
                setup.check_workspace(&workspace)?;
                workspace.clear_skills()?;
                let limits = lower_file_limit_to_quota(limits, &workspace);
                (RunWorkspace::Session(workspace), limits)
            }
            None if setup.needs_scratch_workspace() => {
                let session = ScratchSession::create(&self.scratch_sessions, &spec.run_id)?;
                let scratch = RunWorkspace::Scratch {
                    workspace: session.session.workspace(setup.new_workspace(&limits))?,
                    _session: session,
                };
                (scratch, limits)
            }
            None => {
                let workspace = setup.executor.create_workspace(setup.profile, &limits)?;
                (RunWorkspace::Temporary(workspace), limits)
            }
        };
        run_workspace.workspace().prepare(&spec.run_id)?;
        Ok((run_workspace, limits))
    }

    fn stage(
        &self,
        spec: &JobSpec,
        setup: &RunSetup<'_>,
        checked: &CheckedRequest<'_>,
        workspace: &Workspace,
    ) -> Result<StagedInputs, RunError> {
        let _span = info_span!("workspace.stage.inputs", inputs = spec.inputs.len()).entered();
        if spec.inputs.is_empty() {
            return Ok(StagedInputs::default());
        }
        let session = setup.session.as_ref().map(|locked| &locked.session);
        let stored_pins = session
            .map(|session| session.read_file::<Pins>(PINS_FILE))
            .transpose()?;
        let mut pins = stored_pins.flatten().unwrap_or_default();
        let opened = InputSources {
            artifacts: &self.artifacts,
            scope: &setup.scope,
            pins: &mut pins,
            host: &self.settings.host_directories,
            workspace,
            freeze: &|name, field| {
                let snapshot = self.freeze(checked.catalog, name, field, &setup.cancel)?;
                self.decide_skill(checked, name, &snapshot)?;
                Ok(snapshot)
            },
        }
        .open_all(spec)?;
        let (ready, link_warnings) = match setup.executor.kind() {
            ExecutorKind::Docker => replace_links_by_copies(opened),
            ExecutorKind::Local => (opened, Vec::new()),
        };
        refuse_links_to_sockets(spec, &ready)?;
        let staging_limits = StagingLimits::new(&spec.limits, workspace, &setup.cancel);
        let staged = stage_inputs(workspace, ready, staging_limits)
            .map_err(|error| input_staging_error(error.index, &error.source))?;
        if let Some(session) = session {
            session.update_file(PINS_FILE, |stored| *stored = Some(pins))?;
        }
        Ok(StagedInputs {
            warnings: [link_warnings, staged.warnings].concat(),
            ..staged
        })
    }

    fn execute(
        &self,
        spec: &JobSpec,
        setup: &RunSetup<'_>,
        skills: FrozenSkills,
        links: Vec<StagedLink>,
        workspace: &Workspace,
        events: &mut EventSink<'_>,
    ) -> Result<ExecutionResult, RunError> {
        let _span = info_span!("workspace.run", run = %spec.run_id).entered();
        let host = &self.settings.host_environment;
        let profile_env = setup.profile.initial_environment(|name| host.get(name).cloned());
        let mount_points = self.freezer.store().open_mount_points(&skills.names())?;
        let job = StagedJob::resolve(spec, mount_points, skills.into_list(), links, workspace, profile_env)?
            .with_network(setup.network.clone());
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

/// Containers cannot reach allowed hosts yet. A run that needs them is refused, and never gets less than it was granted.
fn refuse_network_in_container(executor: &Executor, network: &NetworkAccess) -> Result<(), RunError> {
    if executor.kind() == ExecutorKind::Local || network.hosts().is_empty() {
        return Ok(());
    }
    let hosts: Vec<String> = network.hosts().iter().map(ToString::to_string).collect();
    Err(RunError::ExecutorNotConfigured {
        message: format!("the docker executor cannot give access to hosts ({})", hosts.join(", ")),
        hint: "run with `--executor local`, or without the network".to_owned(),
    })
}

/// Completes what the request asks to collect. A request without globs collects all of `out/` for an export, and otherwise
/// lists the first files of `out/` without their content.
fn apply_collection_defaults(requested: CollectionSpec, is_exported: bool) -> CollectionSpec {
    match (requested.globs.is_empty(), is_exported) {
        (false, false) => requested,
        (false, true) => CollectionSpec {
            keep_open: true,
            ..requested
        },
        (true, true) => CollectionSpec {
            globs: OutputGlobs::everything_in("out"),
            keep_open: true,
            ..requested
        },
        (true, false) => CollectionSpec {
            globs: OutputGlobs::everything_in("out"),
            inline: false,
            inline_binary: false,
            save: false,
            keep_open: false,
            excess_files: ExcessFileReporting::CountOnly,
            max_files: DEFAULT_LISTED_FILES,
            ..requested
        },
    }
}

/// Lowers the file size limit to the bytes that the workspace has left of its quota. In a full workspace, the script can
/// only remove or shrink files.
fn lower_file_limit_to_quota(limits: Limits, workspace: &Workspace) -> Limits {
    let used = workspace.used_bytes(limits.workspace_inodes);
    let free = ByteSize(limits.workspace.bytes().saturating_sub(used));
    Limits {
        file: limits.file.min(free),
        ..limits
    }
}

/// Turns links into copies, with a warning for each. Containers are created before their run, and directories of the host
/// cannot be mounted into an existing container.
fn replace_links_by_copies(inputs: Vec<OpenInput>) -> (Vec<OpenInput>, Vec<String>) {
    let mut warnings = Vec::new();
    let inputs = inputs.into_iter().enumerate().map(|(index, input)| {
        if input.mode == InputMode::Link {
            warnings.push(format!(
                "inputs[{index}]: {} is copied, because containers do not support links",
                input.from
            ));
        }
        OpenInput {
            mode: InputMode::Copy,
            ..input
        }
    });
    (inputs.collect(), warnings)
}

/// Records which files a session's workspace contains before the run. Other workspaces are empty.
fn record_baseline(
    setup: &RunSetup<'_>,
    workspace: &Workspace,
    collection: &CollectionSpec,
) -> Result<Baseline, RunError> {
    if setup.session.is_none() {
        return Ok(Baseline::default());
    }
    let content = match setup.executor.kind() {
        ExecutorKind::Local => BaselineContent::Identity,
        // All files of the workspace are written again after the run.
        ExecutorKind::Docker => BaselineContent::Digest,
    };
    Baseline::record(workspace, &collection.globs, content).map_err(RunError::Collect)
}

fn collect_outputs(
    workspace: &Workspace,
    collection: &CollectionSpec,
    baseline: &Baseline,
) -> Result<Outputs, RunError> {
    let _span = info_span!("workspace.collect").entered();
    collect(workspace, collection, baseline).map_err(|error| RunError::Collect(error.into()))
}

impl std::fmt::Debug for RunContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunContext")
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}
