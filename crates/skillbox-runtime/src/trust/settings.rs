//! What the host requires of skills, and where approvals and the audit log are stored.

use std::path::PathBuf;

use skillbox_model::Grants;
use skillbox_trust::{AuditSettings, Publisher, TrustPolicy};

/// What the host requires of skills.
#[derive(Clone, Debug)]
pub struct TrustSettings {
    /// The directory of the host key, the approvals and the audit log.
    pub directory: PathBuf,
    /// Which skills may run.
    pub policy: TrustPolicy,
    /// The publishers whose signatures are valid.
    pub publishers: Vec<Publisher>,
    /// The lock file.
    pub lock_file: Option<PathBuf>,
    /// What every skill may do beyond its confinement.
    pub configured_grants: Grants,
    /// Whether and how runs are recorded.
    pub audit: AuditSettings,
    /// The user of this process, as the audit log names it.
    pub user: String,
}

impl TrustSettings {
    /// Any skill may run, without grants, and every run is recorded.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            policy: TrustPolicy::default(),
            publishers: Vec::new(),
            lock_file: None,
            configured_grants: Grants::default(),
            audit: AuditSettings {
                host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
                ..AuditSettings::default()
            },
            user: format!("uid {}", rustix::process::geteuid().as_raw()),
        }
    }
}
