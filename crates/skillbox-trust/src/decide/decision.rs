//! The decision itself.

use skillbox_model::{Digest, Grants, PublisherName, SkillName};

use super::policy::{TrustMode, TrustPolicy};
use super::refusal::{Refusal, RefusalReason};
use crate::approvals::{Approval, ApprovalState};
use crate::lock_file::LockFile;
use crate::signatures::SignatureStatus;

/// Everything that a decision depends on. The digest is that of the frozen skill which is mounted, so the files cannot
/// change between decision and run.
#[derive(Clone, Copy, Debug)]
pub struct DecisionInput<'a> {
    /// The name of the skill.
    pub skill: &'a SkillName,
    /// The digest of the frozen skill.
    pub digest: &'a Digest,
    /// What the request needs beyond confinement. A request can use grants and never make one.
    pub requested: &'a Grants,
    /// What the skill declares that it needs. A declaration asks and never grants.
    pub declared: &'a Grants,
    /// Grants in the configuration of the host for this skill.
    pub configured: &'a Grants,
    /// Grants that the operator gave on the command line for this one call.
    pub one_call: &'a Grants,
    /// The approval of this digest, whatever its state.
    pub approval: Option<&'a Approval>,
    /// The lock file, if there is one.
    pub lock: Option<&'a LockFile>,
    /// The result of checking the skill's signatures.
    pub signature: &'a SignatureStatus,
    /// The time, in milliseconds since 1970.
    pub now_ms: u64,
}

/// A skill may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What the run may do beyond its confinement.
    pub grants: Grants,
    /// Whether a valid approval of the digest exists, and who gave it.
    pub approved_by: Option<String>,
    /// The publisher with a valid signature.
    pub signer: Option<PublisherName>,
    /// What the skill declares and is not granted: a warning for the caller.
    pub ungranted_needs: Grants,
}

/// Decides whether a skill may run, and with which grants.
///
/// The order is: deny list, signature, lock or approval, grants. The deny list always wins.
pub fn decide(policy: &TrustPolicy, input: &DecisionInput<'_>) -> Result<Decision, Box<Refusal>> {
    let refuse = |reason| {
        Box::new(Refusal {
            skill: input.skill.clone(),
            digest: *input.digest,
            reason,
        })
    };
    if let Some(entry) = policy
        .deny
        .iter()
        .find(|entry| entry.matches(input.skill, input.digest))
    {
        return Err(refuse(RefusalReason::Denied(entry.clone())));
    }
    let signer = check_signature(policy, input.signature).map_err(refuse)?;
    // An approval counts only for the digest that it names, whatever the caller looked up.
    let approval = input.approval.filter(|approval| approval.digest == *input.digest);
    match policy.mode {
        TrustMode::Open => {}
        TrustMode::Approved => check_approval(approval, input.now_ms).map_err(refuse)?,
        TrustMode::Locked => check_lock(input).map_err(refuse)?,
    }
    let approval = approval.filter(|approval| approval.state(input.now_ms) == ApprovalState::Valid);
    let mut grants = input.configured.union(input.one_call);
    if let Some(approval) = approval {
        grants = grants.union(&approval.grants);
    }
    let missing = grants.missing(input.requested);
    if !missing.is_empty() {
        return Err(refuse(RefusalReason::GrantMissing(missing)));
    }
    Ok(Decision {
        ungranted_needs: grants.missing(input.declared),
        grants,
        approved_by: approval.map(|approval| approval.approved_by.clone()),
        signer,
    })
}

fn check_signature(policy: &TrustPolicy, status: &SignatureStatus) -> Result<Option<PublisherName>, RefusalReason> {
    let required = &policy.required_publishers;
    let publishers = match status {
        SignatureStatus::Valid(signatures) => signatures.iter().map(|signature| &signature.publisher),
        _ if required.is_empty() => return Ok(None),
        SignatureStatus::Unsigned => return Err(RefusalReason::Unsigned(required.clone())),
        SignatureStatus::Invalid(problem) => return Err(RefusalReason::SignatureInvalid(problem.clone())),
    };
    let mut accepted = publishers.filter(|publisher| required.is_empty() || required.contains(publisher));
    match accepted.next() {
        Some(publisher) => Ok(Some(publisher.clone())),
        None if required.is_empty() => Ok(None),
        None => Err(RefusalReason::OtherPublisher(required.clone())),
    }
}

fn check_approval(approval: Option<&Approval>, now_ms: u64) -> Result<(), RefusalReason> {
    let Some(approval) = approval else {
        return Err(RefusalReason::NotApproved);
    };
    match approval.state(now_ms) {
        ApprovalState::Valid => Ok(()),
        ApprovalState::Expired => Err(RefusalReason::ApprovalExpired),
        ApprovalState::Revoked => {
            let user = approval
                .revocation
                .as_ref()
                .map(|revocation| revocation.revoked_by.clone());
            Err(RefusalReason::ApprovalRevoked(user.unwrap_or_default()))
        }
    }
}

fn check_lock(input: &DecisionInput<'_>) -> Result<(), RefusalReason> {
    let lock = input.lock.ok_or(RefusalReason::NoLockFile)?;
    let locked = lock.get(input.skill).ok_or(RefusalReason::NotLocked)?;
    if locked.digest == *input.digest {
        Ok(())
    } else {
        Err(RefusalReason::LockMismatch(locked.digest))
    }
}
