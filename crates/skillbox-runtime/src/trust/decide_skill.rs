//! Decides whether a frozen skill may run.

use std::sync::PoisonError;
use std::time::{SystemTime, UNIX_EPOCH};

use skillbox_model::{Digest, Grants};
use skillbox_repository::SkillEntry;
use skillbox_trust::{
    Approval, Decision, DecisionInput, NETWORK_KEY, Refusal, RefusalReason, SECRETS_KEY, SignatureStatus,
    approve_command, decide, parse_declared_needs,
};

use super::skill_files::read_skill_files;
use super::trust_directory::Trust;
use crate::RunError;

/// The number of digests whose signature status is kept in memory.
const SIGNATURE_CACHE_CAPACITY: usize = 1_024;

/// What the host grants to a skill, besides its approval.
#[derive(Debug, Default)]
pub(crate) struct HostGrants {
    /// In its configuration.
    pub(crate) configured: Grants,
    /// On the command line of this process.
    pub(crate) one_call: Grants,
}

/// The decision for one skill, and what the caller should know.
#[derive(Debug)]
pub(crate) struct SkillDecision {
    pub(crate) decision: Decision,
    pub(crate) warnings: Vec<String>,
}

impl Trust {
    /// Decides whether the frozen skill with this digest may run. A refusal says which file differs from the approved or
    /// locked version.
    pub(crate) fn decide(
        &self,
        entry: &SkillEntry,
        digest: &Digest,
        granted: &HostGrants,
    ) -> Result<SkillDecision, RunError> {
        let policy = &self.settings.policy;
        let approval = self.find_approval(digest)?;
        let lock = match (&self.settings.lock_file, policy.mode) {
            (Some(path), skillbox_trust::TrustMode::Locked) => self.lock_cache.read(path)?,
            _ => None,
        };
        let signature = self.signature_status(entry, digest)?;
        let (declared, mut warnings) = declared_needs(entry);
        let input = DecisionInput {
            skill: entry.name(),
            digest,
            requested: &Grants::default(),
            declared: &declared,
            configured: &granted.configured,
            one_call: &granted.one_call,
            approval: approval.as_deref(),
            lock: lock.as_deref(),
            signature: &signature,
            now_ms: now_ms(),
        };
        let decision = decide(policy, &input).map_err(|refusal| {
            let comparison = self.compare_with_accepted(entry, &refusal, lock.as_deref());
            RunError::Refused { refusal, comparison }
        })?;
        if !decision.ungranted_needs.is_empty() {
            warnings.push(format!(
                "the skill {} declares that it needs {}, which is not granted; grant it with `{}`",
                entry.name(),
                decision.ungranted_needs,
                approve_command(entry.name(), &decision.ungranted_needs)
            ));
        }
        Ok(SkillDecision { decision, warnings })
    }

    /// The state of the skill's signatures. It is only checked if the host requires one.
    fn signature_status(&self, entry: &SkillEntry, digest: &Digest) -> Result<SignatureStatus, RunError> {
        if self.settings.policy.required_publishers.is_empty() {
            return Ok(SignatureStatus::Unsigned);
        }
        let cached = self.signatures.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(status) = cached.get(digest) {
            return Ok(status.clone());
        }
        drop(cached);
        let files = read_skill_files(entry, &self.settings.publishers)?;
        if files.manifest.digest() != *digest {
            let problem = "the skill changed while its signature was checked; run it again";
            return Ok(SignatureStatus::Invalid(problem.to_owned()));
        }
        let mut cached = self.signatures.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.len() >= SIGNATURE_CACHE_CAPACITY {
            cached.clear();
        }
        cached.insert(*digest, files.signature.clone());
        Ok(files.signature)
    }

    /// The accepted version that is nearest to a refused one, and the first file that differs.
    fn compare_with_accepted(
        &self,
        entry: &SkillEntry,
        refusal: &Refusal,
        lock: Option<&skillbox_trust::LockFile>,
    ) -> Option<String> {
        let accepted = match refusal.reason {
            RefusalReason::NotApproved => {
                let last: Approval = self.approvals().ok()?.last_of(entry.name()).ok()??;
                ("the last approved version is", last.digest, last.files)
            }
            RefusalReason::LockMismatch(_) => {
                let locked = lock?.get(entry.name())?;
                ("the locked version is", locked.digest, locked.files.clone())
            }
            _ => return None,
        };
        let (text, digest, files) = accepted;
        // Only the current files can be compared. They may be newer than the refused version.
        let current = read_skill_files(entry, &[]).ok()?;
        let changes = files.changes_to(&current.manifest);
        let first = changes.first()?;
        Some(match changes.len() {
            1 => format!("{text} {digest}; {first}"),
            count => format!("{text} {digest}; {first}, and {} more changes", count - 1),
        })
    }
}

/// What a skill says it needs, and warnings. A declaration that cannot be understood is a warning.
pub fn declared_needs(entry: &SkillEntry) -> (Grants, Vec<String>) {
    let value = |key: &str| {
        let metadata = entry.meta.metadata.iter();
        metadata
            .rev()
            .find(|(name, _)| &**name == key)
            .map(|(_, value)| &**value)
    };
    let (network, secrets) = (value(NETWORK_KEY), value(SECRETS_KEY));
    if network.is_none() && secrets.is_none() {
        return (Grants::default(), Vec::new());
    }
    match parse_declared_needs(network, secrets) {
        Ok(needs) => (needs, Vec::new()),
        Err(error) => (Grants::default(), vec![format!("the skill {}: {error}", entry.name())]),
    }
}

/// The time in milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
