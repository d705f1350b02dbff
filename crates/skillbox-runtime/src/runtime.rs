//! The runtime: the parts that all runs share.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use skillbox_artifacts::{FreedContent, Scope, Store};
use skillbox_executor::job::RequestError;
use skillbox_executor::snapshot::{Snapshot, SnapshotStore, SnapshotUsage};
use skillbox_executor::workspace::{InputSource, Owner, open_in_workspace};
use skillbox_executor::{CancelToken, Executor, ExecutorError};
use skillbox_loader::{CatalogSnapshotCache, SkillsState};
use skillbox_model::{
    Digest, ErrorCode, ExecutorKind, HostPort, RelPath, SecretName, SessionId, SkillName, TenantName, with_causes,
};
use skillbox_repository::{Catalog, Diagnostic, Repository, SkillEntry};
use skillbox_sandbox::{Profile, Profiles};

use crate::ended_run::{EndedRun, RunObserver};
use crate::extracted_skills::ExtractedSkills;
use crate::freeze::SkillFreezer;
use crate::history::RunHistory;
use crate::network::{network_access, select_profile};
use crate::secrets::{ConfiguredSecrets, SecretStore};
use crate::session::{Fork, SessionError, SessionStore, list_forks, read_skills_state};
use crate::stored_bytes::StoredBytes;
use crate::trust::Trust;
use crate::{RunError, RuntimeSettings};

/// Unused state that was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectedGarbage {
    /// Idle sessions, with their workspaces and artifacts.
    pub sessions: Vec<SessionId>,
    /// Content that no artifact refers to.
    pub artifacts: FreedContent,
    /// Frozen skills that were not used for long.
    pub snapshots: SnapshotUsage,
}

/// The fixed parts of the pipeline, shared by all front ends. Runs do not see each other.
#[derive(Debug)]
pub struct Runtime {
    pub(crate) repository: Arc<Repository>,
    pub(crate) profiles: Arc<Profiles>,
    pub(crate) executors: Arc<[Executor]>,
    pub(crate) settings: Arc<RuntimeSettings>,
    pub(crate) artifacts: Store,
    pub(crate) freezer: Arc<SkillFreezer>,
    pub(crate) sessions: SessionStore,
    /// The catalog as agents see it, computed once for all agents.
    pub(crate) catalog_snapshots: Arc<CatalogSnapshotCache>,
    /// The files of embedded skills, for hosts that read skills by path.
    pub(crate) extracted_skills: Arc<ExtractedSkills>,
    /// Workspaces on disk for runs without a session, each a session of a single run.
    pub(crate) scratch_sessions: SessionStore,
    /// The tenant whose sessions and artifacts these are; none for the host's own.
    pub(crate) tenant: Option<TenantName>,
    /// Receives every run that has ended.
    pub(crate) observer: RunObserver,
    pub(crate) stored_bytes: StoredBytes,
    pub(crate) trust: Arc<Trust>,
    pub(crate) secrets: Arc<SecretStore>,
    /// The secrets that the operator grants to every run on the command line of this process.
    pub(crate) call_secrets: Arc<BTreeSet<SecretName>>,
    pub(crate) history: Arc<RunHistory>,
}

impl Runtime {
    /// Creates a runtime. Requests can name only these executors.
    pub fn new(
        repository: Arc<Repository>,
        profiles: Profiles,
        executors: Vec<Executor>,
        settings: RuntimeSettings,
    ) -> Self {
        let below = |name: &str| settings.state_dir.join(name);
        let owner = executors.iter().find_map(script_owner);
        let extracted_skills = ExtractedSkills::new(&below("built-in"));
        let snapshots = SnapshotStore::new(below("snapshots")).with_retention(settings.snapshot_retention);
        Self {
            artifacts: Store::new(below("artifacts")),
            freezer: SkillFreezer::new(snapshots, settings.watch_skills).into(),
            sessions: SessionStore::new(below("sessions"), owner),
            catalog_snapshots: CatalogSnapshotCache::with_extracted_skills(extracted_skills.root().to_owned()).into(),
            extracted_skills: extracted_skills.into(),
            scratch_sessions: SessionStore::new(below("scratch"), owner),
            trust: Trust::new(settings.trust.clone()).into(),
            secrets: SecretStore::new(settings.secrets.clone()).into(),
            call_secrets: Arc::default(),
            history: RunHistory::new(&settings.state_dir, settings.history).into(),
            repository,
            profiles: profiles.into(),
            executors: executors.into(),
            settings: settings.into(),
            tenant: None,
            observer: RunObserver::default(),
            stored_bytes: StoredBytes::default(),
        }
    }

    /// The directory that stores what runs leave.
    pub fn state_dir(&self) -> &Path {
        &self.settings.state_dir
    }

    /// The same skills and executors for one tenant of a server, with sessions, artifacts and workspaces that no other
    /// tenant can access.
    pub fn for_tenant(&self, tenant: &TenantName) -> Self {
        let root = self.settings.state_dir.join("tenants").join(tenant.as_str());
        let owner = self.executors.iter().find_map(script_owner);
        Self {
            artifacts: self.artifacts.for_tenant(tenant.as_str()),
            sessions: SessionStore::new(root.join("sessions"), owner),
            scratch_sessions: SessionStore::new(root.join("scratch"), owner),
            trust: self.trust.clone(),
            secrets: self.secrets.clone(),
            call_secrets: self.call_secrets.clone(),
            history: self.history.clone(),
            freezer: self.freezer.clone(),
            catalog_snapshots: self.catalog_snapshots.clone(),
            extracted_skills: self.extracted_skills.clone(),
            repository: self.repository.clone(),
            profiles: self.profiles.clone(),
            executors: self.executors.clone(),
            settings: self.settings.clone(),
            tenant: Some(tenant.clone()),
            observer: self.observer.clone(),
            stored_bytes: self.stored_bytes.clone(),
        }
    }

    /// The same runtime, which grants these secrets to every run.
    pub fn with_call_secrets(mut self, names: BTreeSet<SecretName>) -> Self {
        self.call_secrets = names.into();
        self
    }

    /// The same runtime with artifacts stored outside the state directory.
    pub fn with_artifacts(mut self, artifacts: Store) -> Self {
        self.artifacts = artifacts;
        self
    }

    /// Sets the function that receives every run of this runtime and of its tenants when it has ended. It is called on the
    /// thread of the run, so it must not wait. A second function is ignored.
    pub fn observe_runs(&self, function: impl Fn(&EndedRun<'_>) + Send + Sync + 'static) {
        self.observer.set(Box::new(function));
    }

    /// The catalog of the skills that are on disk now. In a process for one command, it is the catalog of its start.
    pub fn catalog(&self) -> Catalog {
        if self.settings.watch_skills {
            self.repository.refresh();
        }
        self.repository.catalog()
    }

    /// The repository that the skills come from.
    pub fn repository(&self) -> &Arc<Repository> {
        &self.repository
    }

    /// The artifact store.
    pub fn artifacts(&self) -> &Store {
        &self.artifacts
    }

    /// The approvals, the lock file and the audit log.
    pub fn trust(&self) -> &Trust {
        &self.trust
    }

    /// The runs of the state directory.
    pub fn history(&self) -> &RunHistory {
        &self.history
    }

    /// Keeps a snapshot of a skill's current files, so that a later version can be compared with it.
    pub fn keep_snapshot(&self, entry: &SkillEntry) -> Result<Arc<Snapshot>, RunError> {
        self.freezer.freeze(entry, &|| false)
    }

    /// The snapshot with this digest, if it is still stored.
    pub fn open_snapshot(&self, digest: &Digest) -> Option<Snapshot> {
        self.freezer.store().open(digest).ok().flatten()
    }

    /// The stored sessions.
    pub fn sessions(&self) -> &SessionStore {
        &self.sessions
    }

    /// What the agents of a stored session have loaded. Reading it neither refreshes nor changes the state.
    pub fn session_state(&self, id: &SessionId) -> Result<SkillsState, RunError> {
        Ok(read_skills_state(&self.sessions.open(id)?)?)
    }

    /// The forks of a stored session, oldest first.
    pub fn session_forks(&self, id: &SessionId) -> Result<Vec<Fork>, RunError> {
        Ok(list_forks(&self.sessions.open(id)?)?)
    }

    /// Replaces the configured secrets. Runs that have started keep theirs.
    pub fn replace_secrets(&self, secrets: ConfiguredSecrets) {
        self.secrets.replace(secrets);
    }

    /// The profiles of this host.
    pub fn profiles(&self) -> &Profiles {
        &self.profiles
    }

    /// Creates a sandbox or containers before the first run. Failures are ignored here, because the run encounters and
    /// reports them.
    pub fn prepare_executor(&self, executor: ExecutorKind, profile: Option<&str>) {
        let granted = &self.settings.granted_hosts;
        let Ok(profile) = self.resolve_profile(profile) else {
            return;
        };
        match self.executors.iter().find(|candidate| candidate.kind() == executor) {
            Some(Executor::Local(local)) => {
                local.park_sandbox(profile, network_access(profile, granted).unwrap_or_default());
            }
            Some(Executor::Docker(docker)) => {
                let _ = docker.fill_pool(profile);
            }
            None => {}
        }
    }

    /// Removes unused state: idle sessions with their artifacts, content that no artifact refers to, half-written
    /// snapshots, and workspaces of interrupted runs.
    pub fn collect_garbage(&self, session_ttl: Duration) -> Result<CollectedGarbage, RunError> {
        let sessions = self.sessions.collect_garbage(session_ttl)?;
        for id in &sessions {
            self.artifacts.remove_scope(&Scope::Session(id.clone()))?;
        }
        self.scratch_sessions.collect_garbage(Duration::ZERO)?;
        let store = self.freezer.store();
        store.remove_abandoned()?;
        let snapshots = store.collect(store.retention())?;
        let artifacts = self.artifacts.collect_garbage()?;
        Ok(CollectedGarbage {
            sessions,
            artifacts,
            snapshots,
        })
    }

    /// Closes the runs of processes that died in the records. If that fails, every run is refused with the reason.
    pub fn close_lost_runs(&self) {
        let closed = match self.trust.is_recording() {
            true => self.trust.audit_log().map(drop),
            false => Ok(()),
        };
        if let Err(error) = closed {
            tracing::warn!("the audit log cannot be opened: {}", with_causes(&error));
        }
    }

    /// Whether every local executor can still run jobs. An executor that cannot does not recover, and the process has to be
    /// restarted.
    pub fn is_healthy(&self) -> bool {
        let mut local = self.executors.iter().filter_map(|executor| match executor {
            Executor::Local(local) => Some(local),
            Executor::Docker(_) => None,
        });
        local.all(|local| local.is_alive())
    }

    /// The number of sandboxes that wait for a run; none without a local executor.
    pub fn parked_sandboxes(&self) -> Option<u64> {
        self.executors.iter().find_map(|executor| match executor {
            Executor::Local(local) => local.parked_sandboxes(),
            Executor::Docker(_) => None,
        })
    }

    /// The bytes in the state directory by kind, counted at most `max_age` ago.
    pub fn stored_bytes(&self, max_age: Duration) -> Vec<(&'static str, u64)> {
        self.stored_bytes.count(&self.settings.state_dir, max_age)
    }

    /// Removes containers that earlier processes left behind, and returns their number.
    pub fn remove_abandoned_containers(&self) -> Result<usize, RunError> {
        let mut removed = 0;
        for executor in self.executors.iter() {
            if let Executor::Docker(docker) = executor {
                removed += docker.remove_abandoned().map_err(ExecutorError::from)?;
            }
        }
        Ok(removed)
    }

    /// Removes a session with its workspace, its artifacts and its forks, and returns what that freed in the artifact store.
    pub fn remove_session(&self, id: &SessionId) -> Result<FreedContent, RunError> {
        let forks = list_forks(&self.sessions.open(id)?)?;
        self.sessions.remove(id)?;
        for fork in forks {
            match self.remove_session(&fork.session) {
                // A fork may have been removed on its own. One that still runs is removed when it is idle.
                Ok(_) | Err(RunError::Session(SessionError::Unknown(_) | SessionError::Busy(_))) => {}
                Err(error) => return Err(error),
            }
        }
        if !self.artifacts.remove_scope(&Scope::Session(id.clone()))? {
            return Ok(FreedContent::default());
        }
        // The session is removed in any case. The next garbage collection frees what is left, or reports why it cannot.
        Ok(self.artifacts.collect_garbage().unwrap_or_else(|error| {
            tracing::warn!("unreferenced artifact content is not freed: {}", with_causes(&error));
            FreedContent::default()
        }))
    }

    /// Removes the sessions of servers that ended without removing them.
    pub fn remove_orphaned_sessions(&self) -> Result<(), RunError> {
        for id in self.sessions.list_orphaned()? {
            match self.remove_session(&id) {
                // Another process removed it first, or a process of the session is still ending.
                Ok(_) | Err(RunError::Session(SessionError::Unknown(_) | SessionError::Busy(_))) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Opens a file of a session's workspace without following links.
    pub fn open_workspace_file(&self, id: &SessionId, path: &RelPath) -> Result<File, RunError> {
        let missing = |message: String| RequestError::new("path", ErrorCode::InputMissing, message).into();
        let workspace = self.sessions.open(id)?.existing_workspace()?;
        let workspace = workspace.ok_or_else(|| missing(format!("{path} does not exist in the workspace")))?;
        match open_in_workspace(&workspace, path) {
            Ok(InputSource::File(file)) => Ok(file),
            Ok(_) => Err(missing(format!("{path} is not a file of the workspace"))),
            Err(error) => Err(missing(format!("cannot open {path} in the workspace: {error}"))),
        }
    }

    /// The profile that a request names, if the host allows it.
    pub(crate) fn resolve_profile(&self, name: Option<&str>) -> Result<&Profile, RunError> {
        self.resolve_profile_for(name, &self.settings.granted_hosts)
    }

    /// The profile of a run that was granted these hosts.
    pub(crate) fn resolve_profile_for(
        &self,
        name: Option<&str>,
        granted: &BTreeSet<HostPort>,
    ) -> Result<&Profile, RunError> {
        let name = select_profile(name, &self.settings.default_profile, granted);
        let known = || {
            let names: Vec<&str> = self.profiles.iter().map(|profile| profile.name.as_str()).collect();
            names.join(", ")
        };
        if let Some(reason) = self.settings.broken_profiles.get(name) {
            let message = format!("the profile {name:?} cannot be used: {reason}");
            return Err(RequestError::new("profile", ErrorCode::ProfileInvalid, message).into());
        }
        let Some(profile) = self.profiles.get(name) else {
            let message = format!("no profile is named {name:?}; known profiles: {}", known());
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

    /// A skill of the catalog. The error for an unknown name lists similar names.
    pub(crate) fn find_skill<'a>(
        &self,
        catalog: &'a Catalog,
        name: &str,
        field: &str,
    ) -> Result<&'a SkillEntry, RunError> {
        catalog.get(name).ok_or_else(|| {
            if let Some(finding) = catalog.why_not_loaded(name) {
                return not_loaded_error(finding, name, field).into();
            }
            let nearest: Vec<&str> = catalog
                .nearest_names(name, 3)
                .into_iter()
                .map(SkillName::as_str)
                .collect();
            let message = match nearest.as_slice() {
                [] => format!("unknown skill {name:?}: the catalog is empty"),
                names => format!("unknown skill {name:?}; the nearest are {}", names.join(", ")),
            };
            RequestError::new(field, ErrorCode::UnknownSkill, message).into()
        })
    }

    /// The snapshot of a skill's current files; `field` is the request field that names the skill.
    pub(crate) fn freeze(
        &self,
        catalog: &Catalog,
        name: &str,
        field: &str,
        cancel: &CancelToken,
    ) -> Result<Arc<Snapshot>, RunError> {
        let entry = self.find_skill(catalog, name, field)?;
        self.freezer.freeze(entry, &|| cancel.is_cancelled())
    }
}

/// The error for a skill that exists but did not load.
pub(crate) fn not_loaded_error(finding: &Diagnostic, name: &str, field: &str) -> RequestError {
    let message = format!(
        "unknown skill {name:?}: it exists but did not load: {}",
        finding.summary()
    );
    let error = RequestError::new(field, ErrorCode::UnknownSkill, message);
    match &finding.hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// The user that scripts run as, if it is not the user of this process.
fn script_owner(executor: &Executor) -> Option<Owner> {
    match executor {
        Executor::Local(local) => local.script_owner(),
        Executor::Docker(_) => None,
    }
}
