//! What an accepted request resolves to: its profile, its executor, its session and its network.

use skillbox_artifacts::Scope;
use skillbox_executor::job::{JobSpec, ProfileBounds};
use skillbox_executor::{CancelToken, Executor, NetworkAccess};
use skillbox_model::{ExecutorKind, RunId, RunRequest, SessionId};
use skillbox_repository::Catalog;
use skillbox_sandbox::{Profile, SkillDirAccess};

use crate::network::network_access;
use crate::request_checks::check_artifact_prefix;
use crate::session::{OpenSession, RunLock};
use crate::skill_changes::how_long_kept;
use crate::{RunError, Runtime, SkillDirKeep};

/// What an accepted request resolves to, besides its [`JobSpec`].
pub(super) struct RunSetup<'a> {
    pub(super) profile: &'a Profile,
    pub(super) executor: &'a Executor,
    pub(super) scope: Scope,
    pub(super) session: Option<LockedSession>,
    /// The hosts that the run may reach.
    pub(super) network: NetworkAccess,
    /// Whether the script may change the directory of its skill, and how long the changes stay.
    pub(super) skill_dir: SkillDirAccess,
    pub(super) skill_dir_keep: SkillDirKeep,
    pub(super) cancel: CancelToken,
}

/// A session that no other run can use until this value is dropped.
pub(super) struct LockedSession {
    pub(super) session: OpenSession,
    _lock: RunLock,
}

impl Runtime {
    /// Checks the request against the catalog, the profile and the host's settings, then locks the session.
    pub(super) fn accept(
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
            skill_dir: match self.settings.skill_dir {
                SkillDirAccess::Cow => profile.workspace.skill_dir,
                SkillDirAccess::ReadOnly => SkillDirAccess::ReadOnly,
            },
            skill_dir_keep: how_long_kept(&self.settings, profile, executor.kind())?,
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
}

/// Containers cannot reach allowed hosts yet. A run that needs them is refused, and never gets less than it was granted.
pub(super) fn refuse_network_in_container(executor: &Executor, network: &NetworkAccess) -> Result<(), RunError> {
    if executor.kind() == ExecutorKind::Local || network.is_empty() {
        return Ok(());
    }
    let hosts: Vec<String> = network.hosts().iter().map(ToString::to_string).collect();
    Err(RunError::ExecutorNotConfigured {
        message: format!("the docker executor cannot give access to hosts ({})", hosts.join(", ")),
        hint: "run with `--executor local`, or without the network".to_owned(),
    })
}
