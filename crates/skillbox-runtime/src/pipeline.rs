//! The story of a run, told in one place: accept → freeze → workspace → stage → run → collect → save → report.
//!
//! Each step takes what the one before made and gives the next. Events are the only sideways exit; clean-up belongs
//! to the value that made the mess.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use skillbox_artifacts::Scope;
use skillbox_executor::job::{Collecting, Excess, JobSpec, OutputGlobs, ProfileBounds};
use skillbox_executor::snapshot::Snapshot;
use skillbox_executor::workspace::{Outputs, Staged, Workspace, collect, stage_inputs};
use skillbox_executor::{Bring, Cancel, EventSink, Executor, Finished, Placement, Run};
use skillbox_model::{
    ByteSize, ExecutorKind, InputMode, Limits, RunEvent, RunId, RunReport, RunRequest, SessionId, SkillName,
};
use skillbox_repository::Catalog;
use skillbox_sandbox::{Backing, Profile};
use tracing::info_span;

use crate::export::Export;
use crate::inputs::Sources;
use crate::refusals::{misplaced, refuse_bad_prefix, refuse_live_links};
use crate::report::{Facts, report};
use crate::save::save;
use crate::session::{OpenSession, Pins, RunLock, Scratch};
use crate::{RunError, Runtime};

/// Around a request: whose session, who listens, who may cancel.
pub struct RunContext<'a> {
    /// The session whose workspace is used; none for a workspace that is gone after the result.
    pub session: Option<SessionId>,
    /// Who listens.
    pub events: EventSink<'a>,
    /// The caller's switch.
    pub cancel: Cancel,
    /// A directory of the host where whole collected files are written as well; those of `out/`, where none are asked
    /// for.
    pub export: Option<PathBuf>,
}

/// A request that may run: everything about it is settled but its files.
struct Accepted<'a> {
    spec: JobSpec,
    profile: &'a Profile,
    executor: &'a Executor,
    scope: Scope,
    session: Option<SessionHold>,
}

/// What surrounds the command.
struct Around<'a> {
    collecting: &'a Collecting,
    workspace: &'a Workspace,
    cancel: &'a Cancel,
}

impl Accepted<'_> {
    /// Whether the workspace is a directory of the host although no session keeps it.
    fn needs_disk(&self) -> bool {
        self.executor.kind() == ExecutorKind::Local && self.profile.workspace.backing == Backing::Disk
    }
}

/// A session while a run of it goes on.
struct SessionHold {
    session: OpenSession,
    _lock: RunLock,
}

/// A workspace, and what goes with it.
struct Room {
    workspace: Workspace,
    scratch: Option<Scratch>,
}

impl Room {
    /// Lets it go after the run. What was made for this run alone, and is nobody else's business, may wait.
    fn leave(self, accepted: &Accepted<'_>) -> Option<Used> {
        let is_for_later = accepted.session.is_none() && self.scratch.is_none();
        is_for_later.then(|| Used {
            workspace: self.workspace,
            limits: accepted.spec.limits.clone(),
        })
    }
}

/// A run that is over.
#[derive(Debug)]
pub struct Ran<'r> {
    /// The result.
    pub report: RunReport,
    /// What could not be written to the directory of [`RunContext::export`]; the warnings of the report have it too.
    pub unwritten: Vec<String>,
    /// What is still to be taken down.
    pub left: Left<'r>,
}

/// What a run used and nobody needs any more. Dropping it takes it down: best after the result is told, since whoever
/// waits for the result need not wait for that.
#[derive(Debug)]
pub struct Left<'r> {
    executor: &'r Executor,
    used: Option<Used>,
}

#[derive(Debug)]
struct Used {
    workspace: Workspace,
    limits: Limits,
}

impl Drop for Left<'_> {
    fn drop(&mut self) {
        let _span = info_span!("workspace.cleanup").entered();
        match self.used.take() {
            Some(used) => self.executor.take_down(used.workspace, &used.limits),
            None => self.executor.clear_away(),
        }
    }
}

const PINS: &str = "pins.json";
/// Without a request for files, so many of `out/` are listed.
const LISTED_BY_DEFAULT: usize = 20;

impl Runtime {
    /// Runs one request. An error means that we refused or failed; whatever the script does is in the report.
    pub fn run(&self, request: &RunRequest, context: RunContext<'_>) -> Result<RunReport, RunError> {
        Ok(self.run_as(new_run_id(), request, context)?.report)
    }

    /// The same under a name that the caller got from [`new_run_id`] and may have told already, for callers who tell
    /// the result before what the run used is taken down.
    pub fn run_as(&self, run_id: RunId, request: &RunRequest, context: RunContext<'_>) -> Result<Ran<'_>, RunError> {
        let RunContext {
            session,
            mut events,
            cancel,
            export,
        } = context;
        let catalog = self.catalog();
        let mut accepted = self.accept(run_id, request, session, &catalog, &cancel)?;
        let export = export.as_deref().map(Export::open).transpose()?;
        if export.is_some() {
            accepted.spec.collecting.keep_files();
        }
        let collecting = or_a_list(&accepted.spec.collecting);
        events.emit(|| RunEvent::Accepted {
            run_id: accepted.spec.run_id.clone(),
        });
        let skills = self.freeze_all(&accepted.spec, &catalog)?;
        let room = self.room(&mut accepted)?;
        let workspace = &room.workspace;
        let staged = self.stage(&accepted, &catalog, workspace)?;
        events.emit(|| RunEvent::Staged {
            inputs: staged.inputs.len(),
        });
        let digest = skills[0].1.digest();
        let around = Around {
            collecting: &collecting,
            workspace,
            cancel: &cancel,
        };
        if let Some(hold) = &accepted.session {
            hold.session.note_run()?;
        }
        let (finished, staged) = self.execute(&accepted, skills, staged, &around, &mut events)?;
        // Whatever fails from here on, what the run has left goes.
        let mut left = Left {
            executor: accepted.executor,
            used: None,
        };
        let mut outputs = self.collect(&around)?;
        events.emit(|| RunEvent::Collected {
            files: outputs.files.len(),
        });
        let saving = {
            let _span = info_span!("artifact.save").entered();
            let spec = &accepted.spec;
            save(
                &self.artifacts,
                &accepted.scope,
                &spec.run_id,
                &spec.collecting,
                &mut outputs,
                &mut events,
            )?
        };
        let unwritten = export.map_or_else(Vec::new, |export| export.write(&mut outputs));
        left.used = room.leave(&accepted);
        let report = report(Facts {
            run_id: accepted.spec.run_id,
            skill: accepted.spec.skill.to_string(),
            skill_digest: digest,
            executor: accepted.executor.kind(),
            profile: accepted.profile.name.to_string(),
            staged_inputs: staged.inputs,
            finished,
            outputs,
            saved: saving.saved,
            warnings: [staged.warnings, saving.warnings, unwritten.clone()].concat(),
        });
        Ok(Ran {
            report,
            unwritten,
            left,
        })
    }

    /// Parses the request against the catalogue, the profile and what the host allows; takes the session.
    fn accept(
        &self,
        run_id: RunId,
        request: &RunRequest,
        session: Option<SessionId>,
        catalog: &Catalog,
        cancel: &Cancel,
    ) -> Result<Accepted<'_>, RunError> {
        let profile = self.profile(request.profile.as_deref())?;
        let executor = self.executor(request.executor.unwrap_or(self.settings.default_executor))?;
        let bounds = ProfileBounds {
            limits: profile.limits.default.clone(),
            max_wall: profile.limits.wall_max,
        };
        let spec = JobSpec::parse(request, run_id, &bounds)?;
        refuse_bad_prefix(request, &spec)?;
        self.skill(catalog, spec.skill.as_str(), "skill")?;
        for (index, name) in spec.with_skills.iter().enumerate() {
            self.skill(catalog, name.as_str(), &format!("with_skills[{index}]"))?;
        }
        let scope = session.clone().map_or(Scope::User, Scope::Session);
        let session = session.map(|id| self.hold(&id, cancel)).transpose()?;
        Ok(Accepted {
            spec,
            profile,
            executor,
            scope,
            session,
        })
    }

    fn executor(&self, kind: ExecutorKind) -> Result<&Executor, RunError> {
        let known = self.executors.iter().find(|executor| executor.kind() == kind);
        known.ok_or_else(|| RunError::Executor {
            message: format!("the {kind} executor is not configured"),
            hint: "run `skillbox doctor` to see what this host can do".to_owned(),
        })
    }

    fn hold(&self, id: &SessionId, cancel: &Cancel) -> Result<SessionHold, RunError> {
        let session = self.sessions.open_or_create(id)?;
        let lock = session.lock_run(self.settings.session_wait, || cancel.is_cancelled())?;
        Ok(SessionHold { session, _lock: lock })
    }

    fn freeze_all(&self, spec: &JobSpec, catalog: &Catalog) -> Result<Vec<(SkillName, Arc<Snapshot>)>, RunError> {
        let _span = info_span!("workspace.stage.skill", skill = %spec.skill).entered();
        let mut skills = vec![(spec.skill.clone(), self.freeze(catalog, spec.skill.as_str(), "skill")?)];
        for (index, name) in spec.with_skills.iter().enumerate() {
            let snapshot = self.freeze(catalog, name.as_str(), &format!("with_skills[{index}]"))?;
            skills.push((name.clone(), snapshot));
        }
        Ok(skills)
    }

    fn room(&self, accepted: &mut Accepted<'_>) -> Result<Room, RunError> {
        let _span = info_span!("workspace.create").entered();
        let (workspace, scratch) = match &accepted.session {
            Some(hold) => (hold.session.workspace()?, None),
            None if accepted.needs_disk() => {
                let scratch = Scratch::new(&self.scratch, &accepted.spec.run_id)?;
                (scratch.session.workspace()?, Some(scratch))
            }
            None => {
                let limits = &accepted.spec.limits;
                (accepted.executor.create_workspace(accepted.profile, limits)?, None)
            }
        };
        if accepted.session.is_some() {
            workspace.clear_skills()?;
            // No file may outgrow what is left of the quota: a session that is full can only shrink.
            let limits = &mut accepted.spec.limits;
            let used = workspace.used_bytes(limits.workspace_inodes);
            limits.file = limits.file.min(ByteSize(limits.workspace.bytes().saturating_sub(used)));
        }
        workspace.prepare(&accepted.spec.run_id)?;
        Ok(Room { workspace, scratch })
    }

    fn stage(&self, accepted: &Accepted<'_>, catalog: &Catalog, workspace: &Workspace) -> Result<Staged, RunError> {
        let _span = info_span!("workspace.stage.inputs", inputs = accepted.spec.inputs.len()).entered();
        if accepted.spec.inputs.is_empty() {
            return Ok(Staged::default());
        }
        let kept = accepted
            .session
            .as_ref()
            .map(|hold| hold.session.read::<Pins>(PINS))
            .transpose()?;
        let mut pins = kept.flatten().unwrap_or_default();
        let mut ready = Sources {
            artifacts: &self.artifacts,
            scope: &accepted.scope,
            pins: &mut pins,
            host: &self.settings.host_directories,
            workspace,
            freeze: &|name, field| self.freeze(catalog, name, field),
        }
        .open_all(&accepted.spec)?;
        let mut warnings = Vec::new();
        if accepted.executor.kind() == ExecutorKind::Docker {
            for (index, input) in ready
                .iter_mut()
                .enumerate()
                .filter(|(_, input)| input.mode == InputMode::Link)
            {
                // Nothing of the host can be mounted into a container that waits for its run.
                input.mode = InputMode::Copy;
                warnings.push(format!(
                    "inputs[{index}]: {} is copied: a container has no links",
                    input.from
                ));
            }
        }
        refuse_live_links(&accepted.spec, &ready)?;
        let mut staged = stage_inputs(workspace, ready).map_err(|error| misplaced(error.index, &error.source))?;
        staged.warnings.splice(0..0, warnings);
        if let Some(hold) = &accepted.session {
            hold.session.change(PINS, |stored| *stored = Some(pins))?;
        }
        Ok(staged)
    }

    fn execute(
        &self,
        accepted: &Accepted<'_>,
        skills: Vec<(SkillName, Arc<Snapshot>)>,
        mut staged: Staged,
        around: &Around<'_>,
        events: &mut EventSink<'_>,
    ) -> Result<(Finished, Staged), RunError> {
        let _span = info_span!("workspace.run", run = %accepted.spec.run_id).entered();
        let host = &self.settings.host_environment;
        let profile_env = accepted.profile.environment(|name| host.get(name).cloned());
        let links = std::mem::take(&mut staged.links);
        let names: Vec<&SkillName> = skills.iter().map(|(name, _)| name).collect();
        let places = self.frozen.store().places_for(&names)?;
        let placement = Placement::settle(&accepted.spec, places, skills, links, around.workspace, profile_env)?;
        let finished = accepted.executor.run(Run {
            spec: &accepted.spec,
            profile: accepted.profile,
            placement,
            workspace: around.workspace,
            bring: match &accepted.session {
                Some(_) => Bring::Everything,
                None => Bring::Wanted(around.collecting),
            },
            cancel: around.cancel,
            events,
        })?;
        Ok((finished, staged))
    }

    fn collect(&self, around: &Around<'_>) -> Result<Outputs, RunError> {
        let _span = info_span!("workspace.collect").entered();
        collect(around.workspace, around.collecting).map_err(|error| RunError::Collect(error.into()))
    }
}

/// What the request asks for, or a short list of `out/` without content.
fn or_a_list(asked: &Collecting) -> Collecting {
    let mut how = asked.clone();
    if how.globs.is_empty() {
        how.globs = OutputGlobs::everything_in("out");
        how.max_files = LISTED_BY_DEFAULT;
        how.excess = Excess::Counted;
        (how.inline, how.inline_binary, how.save, how.keep_open) = (false, false, false, false);
    }
    how
}

/// The name of a run to come: sortable by time, unique on this host and beyond.
pub fn new_run_id() -> RunId {
    let id = uuid::Uuid::now_v7().simple().to_string();
    RunId::parse(id).unwrap_or_else(|error| unreachable!("a UUID is an identifier: {error}"))
}

/// A session waits for its own runs at most as long as a run may take by default.
pub const DEFAULT_SESSION_WAIT: Duration = Duration::from_secs(300);

impl std::fmt::Debug for RunContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunContext")
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}
