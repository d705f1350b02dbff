//! Everything a run needs, put together once.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use skillbox_artifacts::{Freed, Scope, Store};
use skillbox_executor::job::RequestError;
use skillbox_executor::snapshot::{Snapshot, SnapshotStore};
use skillbox_executor::workspace::{InputSource, Owner, open_in_workspace};
use skillbox_executor::{Executor, ExecutorError};
use skillbox_loader::{SkillsState, ViewCache};
use skillbox_model::{ErrorCode, ExecutorKind, RelPath, SessionId, SkillName, TenantName, with_causes};
use skillbox_repository::{Catalog, Repository, SkillEntry};
use skillbox_sandbox::{Profile, Profiles};

use crate::agent::kept_state;
use crate::freeze::Frozen;
use crate::session::{SessionError, SessionStore};
use crate::{HostDirectories, RunError};

/// What the host decided, resolved before the runtime exists.
#[derive(Debug)]
pub struct RuntimeSettings {
    /// Where sessions, snapshots and artifacts are kept.
    pub state_dir: PathBuf,
    /// The profile of a request that names none.
    pub default_profile: String,
    /// The profiles that requests may name; none means every profile but those without isolation.
    pub allowed_profiles: Option<Vec<String>>,
    /// Profiles that somebody meant and that cannot be used, with why not: they are refused, never replaced.
    pub broken_profiles: BTreeMap<String, String>,
    /// The executor of a request that names none.
    pub default_executor: ExecutorKind,
    /// Where `host://` inputs may come from.
    pub host_directories: HostDirectories,
    /// Variables of the host that profiles may pass on by name.
    pub host_environment: BTreeMap<String, OsString>,
    /// How long a run waits for another run of its session.
    pub session_wait: Duration,
    /// Watch the skills that were run, so that an unchanged one is not read again. For servers.
    pub watch_skills: bool,
}

impl RuntimeSettings {
    /// The defaults, with everything kept below one directory.
    pub fn at(state_dir: impl Into<PathBuf>) -> Self {
        Self {
            state_dir: state_dir.into(),
            default_profile: "default".to_owned(),
            allowed_profiles: None,
            broken_profiles: BTreeMap::new(),
            default_executor: ExecutorKind::Local,
            host_directories: HostDirectories::default(),
            host_environment: BTreeMap::new(),
            session_wait: crate::DEFAULT_SESSION_WAIT,
            watch_skills: false,
        }
    }
}

/// What nobody used any more, and is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Garbage {
    /// Sessions, with all that was theirs.
    pub sessions: Vec<SessionId>,
    /// Content that no artifact had.
    pub artifacts: Freed,
}

/// The pipeline's fixed parts. Shared by every front door; one run does not see another.
#[derive(Debug)]
pub struct Runtime {
    pub(crate) repository: Arc<Repository>,
    pub(crate) profiles: Arc<Profiles>,
    pub(crate) executors: Arc<[Executor]>,
    pub(crate) settings: Arc<RuntimeSettings>,
    pub(crate) artifacts: Store,
    pub(crate) frozen: Arc<Frozen>,
    pub(crate) sessions: SessionStore,
    /// What agents are shown of skills, made once for all of them.
    pub(crate) views: Arc<ViewCache>,
    /// Workspaces on disk for runs that belong to no session: sessions of a single run.
    pub(crate) scratch: SessionStore,
}

impl Runtime {
    /// Puts a runtime together. Only these executors can be asked for.
    pub fn new(
        repository: Arc<Repository>,
        profiles: Profiles,
        executors: Vec<Executor>,
        settings: RuntimeSettings,
    ) -> Self {
        let below = |name: &str| settings.state_dir.join(name);
        let owner = executors.iter().find_map(owner);
        Self {
            artifacts: Store::new(below("artifacts")),
            frozen: Frozen::new(SnapshotStore::new(below("snapshots")), settings.watch_skills).into(),
            sessions: SessionStore::new(below("sessions"), owner),
            views: Arc::default(),
            scratch: SessionStore::new(below("scratch"), owner),
            repository,
            profiles: profiles.into(),
            executors: executors.into(),
            settings: settings.into(),
        }
    }

    /// The same skills and executors for one tenant of a server: with sessions, artifacts and workspaces of its own,
    /// of which no other tenant can even name one.
    pub fn for_tenant(&self, tenant: &TenantName) -> Self {
        let place = self.settings.state_dir.join("tenants").join(tenant.as_str());
        let owner = self.executors.iter().find_map(owner);
        Self {
            artifacts: self.artifacts.for_tenant(tenant.as_str()),
            sessions: SessionStore::new(place.join("sessions"), owner),
            scratch: SessionStore::new(place.join("scratch"), owner),
            frozen: self.frozen.clone(),
            views: self.views.clone(),
            repository: self.repository.clone(),
            profiles: self.profiles.clone(),
            executors: self.executors.clone(),
            settings: self.settings.clone(),
        }
    }

    /// The same with artifacts in another place than the state directory.
    pub fn with_artifacts(mut self, artifacts: Store) -> Self {
        self.artifacts = artifacts;
        self
    }

    /// The skills as of now.
    pub fn catalog(&self) -> Catalog {
        self.repository.catalog()
    }

    /// Where the skills come from.
    pub fn repository(&self) -> &Arc<Repository> {
        &self.repository
    }

    /// The artifact store.
    pub fn artifacts(&self) -> &Store {
        &self.artifacts
    }

    /// The stored sessions.
    pub fn sessions(&self) -> &SessionStore {
        &self.sessions
    }

    /// What the agents of a stored session have loaded. Nothing is taken in or changed by looking.
    pub fn session_state(&self, id: &SessionId) -> Result<SkillsState, RunError> {
        Ok(kept_state(&self.sessions.open(id)?)?)
    }

    /// The profiles that this host knows.
    pub fn profiles(&self) -> &Profiles {
        &self.profiles
    }

    /// Has a sandbox, or containers, made ahead for runs that come soon. A failure comes up again, and is told, when a
    /// run comes.
    pub fn prepare(&self, executor: ExecutorKind, profile: Option<&str>) {
        let Ok(profile) = self.profile(profile) else { return };
        match self.executors.iter().find(|known| known.kind() == executor) {
            Some(Executor::Local(local)) => local.prepare(profile),
            Some(Executor::Docker(docker)) => {
                let _ = docker.warm(profile);
            }
            None => {}
        }
    }

    /// Removes what nobody uses any more: idle sessions with their artifacts, content that no artifact has, half-written
    /// snapshots, workspaces of runs that were interrupted.
    pub fn collect_garbage(&self, session_ttl: Duration) -> Result<Garbage, RunError> {
        let sessions = self.sessions.collect_garbage(session_ttl)?;
        for id in &sessions {
            self.artifacts.remove_scope(&Scope::Session(id.clone()))?;
        }
        self.scratch.collect_garbage(Duration::ZERO)?;
        self.frozen.store().sweep()?;
        let artifacts = self.artifacts.collect_garbage()?;
        Ok(Garbage { sessions, artifacts })
    }

    /// Whether every executor of this host can still run something. One that cannot does not come back: whoever started
    /// this process has to start it again.
    pub fn is_able(&self) -> bool {
        let mut local = self.executors.iter().filter_map(|executor| match executor {
            Executor::Local(local) => Some(local),
            Executor::Docker(_) => None,
        });
        local.all(|local| local.is_alive())
    }

    /// Removes containers that ended runs left, on every executor that has any; gives how many there were.
    pub fn sweep_containers(&self) -> Result<usize, RunError> {
        let mut removed = 0;
        for executor in self.executors.iter() {
            if let Executor::Docker(docker) = executor {
                removed += docker.sweep().map_err(ExecutorError::from)?;
            }
        }
        Ok(removed)
    }

    /// Removes a session with everything that is its own; tells what that freed in the store of artifacts.
    pub fn remove_session(&self, id: &SessionId) -> Result<Freed, RunError> {
        self.sessions.remove(id)?;
        if !self.artifacts.remove_scope(&Scope::Session(id.clone()))? {
            return Ok(Freed::default());
        }
        // The session is gone in any case. What stays for now is freed, or told of, with the rest of the garbage.
        Ok(self.artifacts.collect_garbage().unwrap_or_else(|error| {
            tracing::warn!("content that no artifact has stays: {}", with_causes(&error));
            Freed::default()
        }))
    }

    /// Removes the sessions of servers that ended without doing so themselves.
    pub fn remove_ownerless_sessions(&self) -> Result<(), RunError> {
        for id in self.sessions.ownerless()? {
            match self.remove_session(&id) {
                // Somebody else was faster, or a last process of its is still about to end.
                Ok(_) | Err(RunError::Session(SessionError::Unknown(_) | SessionError::Busy(_))) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// A file of a session's workspace, opened without following any link.
    pub fn workspace_file(&self, id: &SessionId, path: &RelPath) -> Result<File, RunError> {
        let refused = |message: String| RequestError::new("path", ErrorCode::InputMissing, message).into();
        let workspace = self.sessions.open(id)?.workspace()?;
        match open_in_workspace(&workspace, path) {
            Ok(InputSource::File(file)) => Ok(file),
            Ok(_) => Err(refused(format!("{path} is not a file of the workspace"))),
            Err(error) => Err(refused(format!("cannot open {path} in the workspace: {error}"))),
        }
    }

    /// The profile that a request names, where the host allows it.
    pub(crate) fn profile(&self, name: Option<&str>) -> Result<&Profile, RunError> {
        let name = name.unwrap_or(&self.settings.default_profile);
        let known = || {
            let names: Vec<&str> = self.profiles.iter().map(|profile| profile.name.as_str()).collect();
            format!("known are {}", names.join(", "))
        };
        if let Some(why) = self.settings.broken_profiles.get(name) {
            let message = format!("the profile {name:?} cannot be used: {why}");
            return Err(RequestError::new("profile", ErrorCode::ProfileInvalid, message).into());
        }
        let Some(profile) = self.profiles.get(name) else {
            let message = format!("no profile is named {name:?}; {}", known());
            return Err(RequestError::new("profile", ErrorCode::ProfileUnknown, message).into());
        };
        let allowed = match &self.settings.allowed_profiles {
            None => true,
            Some(list) => list.iter().any(|allowed| allowed == name),
        };
        if !allowed {
            let message = format!("this host does not allow the profile {name:?}");
            return Err(RequestError::new("profile", ErrorCode::ProfileUnknown, message).into());
        }
        Ok(profile)
    }

    /// A skill of the catalogue, or an error that names the nearest.
    pub(crate) fn skill<'a>(&self, catalog: &'a Catalog, name: &str, field: &str) -> Result<&'a SkillEntry, RunError> {
        catalog.get(name).ok_or_else(|| {
            let nearest: Vec<&str> = catalog.nearest(name, 3).into_iter().map(SkillName::as_str).collect();
            let message = match nearest.as_slice() {
                [] => format!("unknown skill {name:?}: no skill is in the catalogue"),
                names => format!("unknown skill {name:?}; the nearest are {}", names.join(", ")),
            };
            RequestError::new(field, ErrorCode::UnknownSkill, message).into()
        })
    }

    pub(crate) fn freeze(&self, catalog: &Catalog, name: &str, field: &str) -> Result<Arc<Snapshot>, RunError> {
        self.frozen.get(self.skill(catalog, name, field)?)
    }
}

/// The script's user on the host, where that is not ours.
fn owner(executor: &Executor) -> Option<Owner> {
    match executor {
        Executor::Local(local) => local.owner(),
        Executor::Docker(_) => None,
    }
}
