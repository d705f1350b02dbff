//! The trust directory of a host: its key, approvals and audit log, each opened at its first use.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use skillbox_model::{Digest, ProfileName, TenantName};
use skillbox_repository::content_digest;
use skillbox_sandbox::Profile;
use skillbox_trust::{
    Approval, ApprovalStore, AuditEvent, AuditLog, AuditMode, Caller, ForwardStatus, HostKey, ManagedEntity,
    ManagementActivity, SignatureStatus, TrustError, TrustMode, forward_status,
};

use super::lock_cache::LockCache;
use super::settings::TrustSettings;

/// The trust directory of a host, and what the host requires of skills.
#[derive(Debug)]
pub struct Trust {
    pub(super) settings: TrustSettings,
    pub(super) lock_cache: LockCache,
    /// The result of checking the signatures of a digest. Neither the files of a digest nor the publishers change.
    pub(super) signatures: Mutex<HashMap<Digest, SignatureStatus>>,
    /// The profiles of a process never change.
    profile_digests: Mutex<BTreeMap<ProfileName, Digest>>,
    key: OnceLock<Arc<HostKey>>,
    approvals: OnceLock<ApprovalStore>,
    audit: OnceLock<AuditLog>,
    /// Held while one of the above is opened.
    opening: Mutex<()>,
}

impl Trust {
    /// A trust directory. Nothing is read or created before it is needed.
    pub fn new(settings: TrustSettings) -> Self {
        Self {
            settings,
            lock_cache: LockCache::default(),
            signatures: Mutex::default(),
            profile_digests: Mutex::default(),
            key: OnceLock::new(),
            approvals: OnceLock::new(),
            audit: OnceLock::new(),
            opening: Mutex::default(),
        }
    }

    /// The settings.
    pub fn settings(&self) -> &TrustSettings {
        &self.settings
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.settings.directory
    }

    /// The key of this host, created at its first use.
    pub fn host_key(&self) -> Result<Arc<HostKey>, TrustError> {
        open_once(&self.key, &self.opening, || {
            HostKey::open(&self.settings.directory).map(Arc::new)
        })
        .cloned()
    }

    /// The approvals.
    pub fn approvals(&self) -> Result<&ApprovalStore, TrustError> {
        let key = self.host_key()?;
        open_once(&self.approvals, &self.opening, || {
            Ok(ApprovalStore::new(&self.settings.directory, key))
        })
    }

    /// The audit log. Opening it closes the runs of processes that died.
    pub fn audit_log(&self) -> Result<&AuditLog, TrustError> {
        let key = self.host_key()?;
        open_once(&self.audit, &self.opening, || {
            AuditLog::open(&self.settings.directory, key, self.settings.audit.clone())
        })
    }

    /// How far the receiver of audit records is behind; `None` if there is no receiver.
    pub fn forward_status(&self) -> Result<Option<ForwardStatus>, TrustError> {
        if !self.settings.audit.is_forwarded || !self.is_recording() {
            return Ok(None);
        }
        forward_status(&self.settings.directory, &*self.host_key()?).map(Some)
    }

    /// Whether runs are recorded.
    pub fn is_recording(&self) -> bool {
        self.settings.audit.mode != AuditMode::Off
    }

    /// Records that a user of this host created, used, changed or removed something.
    pub fn record(
        &self,
        activity: ManagementActivity,
        entity: &ManagedEntity,
        message: &str,
    ) -> Result<(), TrustError> {
        if !self.is_recording() {
            return Ok(());
        }
        self.audit_log()?
            .append(&self.caller(None), &AuditEvent::Managed(activity, entity, message))
    }

    /// Who asks for a run.
    pub(crate) fn caller(&self, tenant: Option<&TenantName>) -> Caller {
        Caller {
            user: self.settings.user.clone(),
            tenant: tenant.map(|tenant| tenant.as_str().to_owned()),
            token_name: None,
        }
    }

    /// The digest of a profile as JSON, for audit records.
    pub(crate) fn profile_digest(&self, profile: &Profile) -> Option<Digest> {
        let mut digests = self.profile_digests.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(digest) = digests.get(&profile.name) {
            return Some(*digest);
        }
        let json = serde_json::to_vec(profile).ok()?;
        let digest = content_digest(json.as_slice()).ok()?;
        digests.insert(profile.name.clone(), digest);
        Some(digest)
    }

    /// The approval of a digest, whatever its state.
    pub(super) fn find_approval(&self, digest: &Digest) -> Result<Option<Arc<Approval>>, TrustError> {
        // A host that neither approves nor records needs no key.
        let needs_no_key =
            self.settings.policy.mode == TrustMode::Open && !self.is_recording() && !self.approvals_dir().exists();
        if needs_no_key {
            return Ok(None);
        }
        self.approvals()?.find(digest)
    }

    fn approvals_dir(&self) -> PathBuf {
        self.settings.directory.join("approvals")
    }
}

/// The value of a cell. Of several threads, one opens it and the others wait. A failure is not stored.
fn open_once<'c, T>(
    cell: &'c OnceLock<T>,
    opening: &Mutex<()>,
    open: impl FnOnce() -> Result<T, TrustError>,
) -> Result<&'c T, TrustError> {
    if let Some(value) = cell.get() {
        return Ok(value);
    }
    let _guard = opening.lock().unwrap_or_else(PoisonError::into_inner);
    match cell.get() {
        Some(value) => Ok(value),
        None => {
            let value = open()?;
            Ok(cell.get_or_init(|| value))
        }
    }
}
