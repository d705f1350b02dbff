//! The settings of a runtime, which the host decides before it creates the runtime.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use skillbox_executor::job::RequestCaps;
use skillbox_executor::snapshot::SnapshotRetention;
use skillbox_model::{ExecutorKind, HostPort};
use skillbox_sandbox::SkillDirAccess;

use crate::HostDirectories;
use crate::environment::EnvironmentSettings;
use crate::history::HistoryLimits;
use crate::secrets::ConfiguredSecrets;
use crate::trust::TrustSettings;

/// How long a run waits for another run of its session by default. Equal to the default wall-clock limit of a run.
pub const DEFAULT_SESSION_LOCK_TIMEOUT: Duration = Duration::from_secs(300);

/// How long changes to the directory of a skill stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SkillDirKeep {
    /// Until the end of the run.
    #[default]
    Run,
    /// As long as the session, until the skill itself changes.
    Session,
}

/// The settings of a runtime.
#[derive(Debug)]
pub struct RuntimeSettings {
    /// The directory that stores sessions, snapshots and artifacts.
    pub state_dir: PathBuf,
    /// The profile of a request that names none.
    pub default_profile: String,
    /// The profiles that requests may name; `None` allows every profile that is loaded.
    pub allowed_profiles: Option<Vec<String>>,
    /// Configured profiles that cannot be used, with the reason. Requests for them are refused, never served by another
    /// profile.
    pub broken_profiles: BTreeMap<String, String>,
    /// The executor of a request that names none.
    pub default_executor: ExecutorKind,
    /// The directories that `host://` inputs may come from.
    pub host_directories: HostDirectories,
    /// Environment variables of the host that profiles may pass on by name.
    pub host_environment: BTreeMap<String, OsString>,
    /// How long a run waits for another run of its session.
    pub session_lock_timeout: Duration,
    /// Whether skills that ran are watched, so that an unchanged skill is not read again. Only useful in servers.
    pub watch_skills: bool,
    /// The hosts that the operator grants to every run whose profile has an allow-list.
    pub granted_hosts: BTreeSet<HostPort>,
    /// The configured secrets.
    pub secrets: ConfiguredSecrets,
    /// The largest limits that requests may set.
    pub request_caps: RequestCaps,
    /// Which snapshots of skills are kept.
    pub snapshot_retention: SnapshotRetention,
    /// Which skills may run, and how runs are recorded.
    pub trust: TrustSettings,
    /// Whether scripts may change the directory of their skill, if their profile lets them.
    pub skill_dir: SkillDirAccess,
    /// How long changes to the directory of a skill stay. [`SkillDirKeep::Session`] has an effect only if every skill may
    /// run.
    pub skill_dir_keep: SkillDirKeep,
    /// How many runs are kept, and for how long.
    pub history: HistoryLimits,
    /// The packages that runs get.
    pub environments: EnvironmentSettings,
}

impl RuntimeSettings {
    /// The defaults, with all state below one directory.
    pub fn with_state_dir(state_dir: impl Into<PathBuf>) -> Self {
        let state_dir = state_dir.into();
        Self {
            trust: TrustSettings::in_directory(state_dir.join("trust")),
            history: HistoryLimits::default(),
            state_dir,
            default_profile: "default".to_owned(),
            allowed_profiles: None,
            broken_profiles: BTreeMap::new(),
            default_executor: ExecutorKind::Local,
            host_directories: HostDirectories::default(),
            host_environment: BTreeMap::new(),
            session_lock_timeout: DEFAULT_SESSION_LOCK_TIMEOUT,
            watch_skills: false,
            granted_hosts: BTreeSet::new(),
            secrets: ConfiguredSecrets::default(),
            request_caps: RequestCaps::default(),
            snapshot_retention: SnapshotRetention::default(),
            environments: EnvironmentSettings::default(),
            skill_dir: SkillDirAccess::Cow,
            skill_dir_keep: SkillDirKeep::default(),
        }
    }
}
