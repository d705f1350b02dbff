//! One run, step by step: accept → freeze → workspace → stage → run → collect → save → report.
//!
//! [`Runtime::run_with_id`] is the whole sequence. Each step takes the values of the steps before it and returns a new
//! one; no value is changed afterwards. Besides the result, only events leave the pipeline.

use std::path::PathBuf;
use std::sync::Arc;

use skillbox_artifacts::Scope;
use skillbox_executor::job::{CollectionSpec, ExcessFileReporting, JobSpec, OutputGlobs, ProfileBounds};
use skillbox_executor::snapshot::Snapshot;
use skillbox_executor::workspace::{OpenInput, Outputs, StagedInputs, StagedLink, Workspace, collect, stage_inputs};
use skillbox_executor::{CancelToken, EventSink, ExecutionResult, Executor, FilesToFetch, RunParams, StagedJob};
use skillbox_model::{
    ByteSize, ExecutorKind, InputMode, Limits, RunEvent, RunId, RunReport, RunRequest, SessionId, SkillName,
};
use skillbox_repository::Catalog;
use skillbox_sandbox::{Profile, WorkspaceBacking};
use tracing::info_span;

use crate::export::ExportDirectory;
use crate::inputs::InputSources;
use crate::refusals::{check_artifact_prefix, check_links_for_ipc, staging_error};
use crate::report::{ReportParts, build_report};
use crate::run_workspace::{Cleanup, RunWorkspace};
use crate::save::save_outputs;
use crate::session::{OpenSession, Pins, RunLock, ScratchSession};
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
    pub export_dir: Option<PathBuf>,
}

/// A run that is over.
#[derive(Debug)]
pub struct CompletedRun<'r> {
    /// The result.
    pub report: RunReport,
    /// The files that could not be written to [`RunContext::export_dir`]; the warnings of the report list them too.
    pub export_failures: Vec<String>,
    /// The pending clean-up.
    pub cleanup: Cleanup<'r>,
}

/// What an accepted request resolves to, besides its [`JobSpec`].
struct RunSetup<'a> {
    profile: &'a Profile,
    executor: &'a Executor,
    scope: Scope,
    session: Option<LockedSession>,
    cancel: CancelToken,
}

impl RunSetup<'_> {
    /// Whether a run without a session needs a workspace on the host's disk.
    fn needs_scratch_workspace(&self) -> bool {
        self.executor.kind() == ExecutorKind::Local && self.profile.workspace.backing == WorkspaceBacking::Disk
    }
}

/// A session that no other run can use until this value is dropped.
struct LockedSession {
    session: OpenSession,
    _lock: RunLock,
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
        let RunContext {
            session,
            mut events,
            cancel,
            export_dir,
        } = context;
        let catalog = self.catalog();
        let (spec, setup) = self.accept(run_id, request, session, cancel, &catalog)?;
        let export = export_dir.as_deref().map(ExportDirectory::open).transpose()?;
        events.emit(|| RunEvent::Accepted {
            run_id: spec.run_id.clone(),
        });
        let skills = self.freeze_skills(&spec, &catalog)?;
        let skill_digest = skills.main.1.digest();
        let (run_workspace, limits) = self.open_workspace(&spec, &setup)?;
        let workspace = run_workspace.workspace();
        let spec = JobSpec {
            collection: apply_collection_defaults(spec.collection, export.is_some()),
            limits,
            ..spec
        };
        let StagedInputs {
            inputs,
            links,
            warnings,
        } = self.stage(&spec, &setup, &catalog, workspace)?;
        events.emit(|| RunEvent::Staged { inputs: inputs.len() });
        if let Some(locked) = &setup.session {
            locked.session.record_run()?;
        }
        let execution = self.execute(&spec, &setup, skills, links, workspace, &mut events)?;
        let collected = collect_outputs(workspace, &spec.collection);
        // Collected files are open, so nothing below needs the workspace. It is released even if a step below fails.
        let cleanup = run_workspace.into_cleanup(setup.executor, &spec.limits);
        let mut outputs = collected?;
        events.emit(|| RunEvent::Collected {
            files: outputs.files.len(),
        });
        let saved = {
            let _span = info_span!("artifact.save").entered();
            save_outputs(&self.artifacts, &setup.scope, &spec, &mut outputs, &mut events)?
        };
        let export_failures = export.map_or_else(Vec::new, |export| export.write(&mut outputs));
        let report = build_report(ReportParts {
            run_id: spec.run_id,
            skill: spec.skill.to_string(),
            skill_digest,
            executor: setup.executor.kind(),
            profile: setup.profile.name.to_string(),
            staged_inputs: inputs,
            execution,
            outputs,
            saved: saved.files,
            warnings: [warnings, saved.warnings, export_failures.clone()].concat(),
        });
        Ok(CompletedRun {
            report,
            export_failures,
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
        let bounds = ProfileBounds {
            limits: profile.limits.default.clone(),
            max_wall: profile.limits.wall_max,
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
            cancel,
        };
        Ok((spec, setup))
    }

    fn find_executor(&self, kind: ExecutorKind) -> Result<&Executor, RunError> {
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

    fn freeze_skills(&self, spec: &JobSpec, catalog: &Catalog) -> Result<FrozenSkills, RunError> {
        let _span = info_span!("workspace.stage.skill", skill = %spec.skill).entered();
        let freeze = |name: &SkillName, field: &str| -> Result<_, RunError> {
            Ok((name.clone(), self.freeze(catalog, name.as_str(), field)?))
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
                let workspace = locked.session.workspace()?;
                workspace.clear_skills()?;
                let limits = lower_file_limit_to_quota(limits, &workspace);
                (RunWorkspace::Session(workspace), limits)
            }
            None if setup.needs_scratch_workspace() => {
                let session = ScratchSession::create(&self.scratch_sessions, &spec.run_id)?;
                let scratch = RunWorkspace::Scratch {
                    workspace: session.session.workspace()?,
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
        catalog: &Catalog,
        workspace: &Workspace,
    ) -> Result<StagedInputs, RunError> {
        let _span = info_span!("workspace.stage.inputs", inputs = spec.inputs.len()).entered();
        if spec.inputs.is_empty() {
            return Ok(StagedInputs::default());
        }
        let session = setup.session.as_ref().map(|locked| &locked.session);
        let stored_pins = session.map(|session| session.read::<Pins>(PINS_FILE)).transpose()?;
        let mut pins = stored_pins.flatten().unwrap_or_default();
        let opened = InputSources {
            artifacts: &self.artifacts,
            scope: &setup.scope,
            pins: &mut pins,
            host: &self.settings.host_directories,
            workspace,
            freeze: &|name, field| self.freeze(catalog, name, field),
        }
        .open_all(spec)?;
        let (ready, link_warnings) = match setup.executor.kind() {
            ExecutorKind::Docker => copy_instead_of_link(opened),
            ExecutorKind::Local => (opened, Vec::new()),
        };
        check_links_for_ipc(spec, &ready)?;
        let staged = stage_inputs(workspace, ready).map_err(|error| staging_error(error.index, &error.source))?;
        if let Some(session) = session {
            session.change(PINS_FILE, |stored| *stored = Some(pins))?;
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
        let job = StagedJob::resolve(spec, mount_points, skills.into_list(), links, workspace, profile_env)?;
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
fn copy_instead_of_link(inputs: Vec<OpenInput>) -> (Vec<OpenInput>, Vec<String>) {
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

fn collect_outputs(workspace: &Workspace, collection: &CollectionSpec) -> Result<Outputs, RunError> {
    let _span = info_span!("workspace.collect").entered();
    collect(workspace, collection).map_err(|error| RunError::Collect(error.into()))
}

/// A new run id: sortable by time, unique across hosts.
pub fn new_run_id() -> RunId {
    let id = uuid::Uuid::now_v7().simple().to_string();
    RunId::parse(id).unwrap_or_else(|error| unreachable!("a UUID is an identifier: {error}"))
}

impl std::fmt::Debug for RunContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunContext")
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}
