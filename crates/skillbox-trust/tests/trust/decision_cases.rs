//! The table of decisions.

use skillbox_model::{ErrorCode, Grants, PublisherName};
use skillbox_trust::{
    Approval, DecisionInput, DenyEntry, LockFile, LockedSkill, Revocation, SignatureMethod, SignatureStatus,
    SkillManifest, TrustMode, TrustPolicy, ValidSignature, decide,
};

use crate::fixture::{manifest, network, secrets, skill_name};

/// The inputs of a decision, which each case changes.
struct Case {
    policy: TrustPolicy,
    files: SkillManifest,
    requested: Grants,
    declared: Grants,
    configured: Grants,
    one_call: Grants,
    approval: Option<Approval>,
    lock: Option<LockFile>,
    signature: SignatureStatus,
}

const NOW_MS: u64 = 1_000_000;

impl Case {
    fn new(mode: TrustMode) -> Self {
        Self {
            policy: TrustPolicy {
                mode,
                ..TrustPolicy::default()
            },
            files: manifest(&[("SKILL.md", "text")]),
            requested: Grants::default(),
            declared: Grants::default(),
            configured: Grants::default(),
            one_call: Grants::default(),
            approval: None,
            lock: None,
            signature: SignatureStatus::Unsigned,
        }
    }

    fn approval(&self, grants: Grants) -> Approval {
        Approval::new(skill_name("report"), self.files.clone(), grants, "alice", 1)
    }

    fn lock(files: SkillManifest) -> LockFile {
        let mut lock = LockFile::default();
        lock.insert(LockedSkill {
            name: skill_name("report"),
            digest: files.digest(),
            source: None,
            signer: None,
            files,
        });
        lock
    }

    /// The grants in force, or the code of the refusal. Every refusal names skill, digest and a command or setting.
    fn result(&self) -> Result<Grants, ErrorCode> {
        let digest = self.files.digest();
        let name = skill_name("report");
        let input = DecisionInput {
            skill: &name,
            digest: &digest,
            requested: &self.requested,
            declared: &self.declared,
            configured: &self.configured,
            one_call: &self.one_call,
            approval: self.approval.as_ref(),
            lock: self.lock.as_ref(),
            signature: &self.signature,
            now_ms: NOW_MS,
        };
        match decide(&self.policy, &input) {
            Ok(decision) => Ok(decision.grants),
            Err(refusal) => {
                let body = refusal.to_error_body();
                assert!(
                    body.message.contains("report") && body.message.contains(&digest.to_string()),
                    "{body:?}"
                );
                assert!(
                    body.hint
                        .is_some_and(|hint| hint.contains("report") || hint.contains("deny"))
                );
                Err(body.code)
            }
        }
    }
}

#[test]
fn open_runs_everything_without_grants() {
    let mut case = Case::new(TrustMode::Open);
    case.declared = network(&["a.example"]);
    assert_eq!(case.result(), Ok(Grants::default()), "a declaration grants nothing");
    case.requested = network(&["a.example"]);
    assert_eq!(case.result(), Err(ErrorCode::GrantMissing));
    for source in 0..3 {
        let mut granted = Case::new(TrustMode::Open);
        granted.requested = network(&["a.example"]);
        match source {
            0 => granted.configured = network(&["*.example.org", "a.example"]),
            1 => granted.one_call = network(&["a.example"]),
            _ => granted.approval = Some(granted.approval(network(&["a.example"]))),
        }
        assert!(granted.result().is_ok(), "source {source}");
        granted.requested = secrets(&["TOKEN"]);
        assert_eq!(granted.result(), Err(ErrorCode::GrantMissing), "source {source}");
    }
}

#[test]
fn approved_needs_a_valid_approval_of_this_digest() {
    let mut case = Case::new(TrustMode::Approved);
    assert_eq!(case.result(), Err(ErrorCode::NotApproved));
    case.lock = Some(Case::lock(case.files.clone()));
    case.one_call = network(&["a.example"]);
    assert_eq!(
        case.result(),
        Err(ErrorCode::NotApproved),
        "neither lock nor flag approves"
    );

    case.approval = Some(case.approval(secrets(&["TOKEN"])));
    assert_eq!(case.result(), Ok(network(&["a.example"]).union(&secrets(&["TOKEN"]))));

    case.files = manifest(&[("SKILL.md", "changed")]);
    assert_eq!(
        case.result(),
        Err(ErrorCode::NotApproved),
        "an approval of another digest"
    );

    let mut expired = Case::new(TrustMode::Approved);
    let mut approval = expired.approval(Grants::default());
    approval.expires_at_ms = Some(NOW_MS);
    expired.approval = Some(approval.clone());
    assert_eq!(expired.result(), Err(ErrorCode::NotApproved));
    approval.expires_at_ms = Some(NOW_MS + 1);
    expired.approval = Some(approval.clone());
    assert!(expired.result().is_ok());
    approval.revocation = Some(Revocation {
        revoked_by: "bob".to_owned(),
        revoked_at_ms: 2,
        note: None,
    });
    expired.approval = Some(approval);
    assert_eq!(expired.result(), Err(ErrorCode::NotApproved));
}

#[test]
fn an_approval_that_ended_grants_nothing_in_open_mode() {
    let mut case = Case::new(TrustMode::Open);
    let mut approval = case.approval(network(&["a.example"]));
    approval.expires_at_ms = Some(1);
    case.approval = Some(approval);
    assert_eq!(case.result(), Ok(Grants::default()));
}

#[test]
fn locked_needs_the_digest_of_the_lock_file() {
    let mut case = Case::new(TrustMode::Locked);
    assert_eq!(case.result(), Err(ErrorCode::NotLocked), "no lock file");
    case.lock = Some(LockFile::default());
    assert_eq!(case.result(), Err(ErrorCode::NotLocked));
    case.approval = Some(case.approval(Grants::default()));
    assert_eq!(case.result(), Err(ErrorCode::NotLocked), "an approval does not lock");
    case.lock = Some(Case::lock(manifest(&[("SKILL.md", "other")])));
    assert_eq!(case.result(), Err(ErrorCode::LockMismatch));
    case.lock = Some(Case::lock(case.files.clone()));
    assert!(case.result().is_ok());
}

#[test]
fn a_required_publisher_must_have_signed() {
    let publisher = |name: &str| PublisherName::parse(name).unwrap();
    let signed_by = |name: &str| {
        SignatureStatus::Valid(vec![ValidSignature {
            publisher: publisher(name),
            method: SignatureMethod::Minisign,
            covers_modes: true,
        }])
    };
    let mut case = Case::new(TrustMode::Open);
    case.signature = SignatureStatus::Invalid("changed".to_owned());
    assert!(case.result().is_ok(), "nothing is required");
    case.policy.required_publishers = vec![publisher("acme"), publisher("beta")];
    assert_eq!(case.result(), Err(ErrorCode::SignatureInvalid));
    case.signature = SignatureStatus::Unsigned;
    assert_eq!(case.result(), Err(ErrorCode::SignatureInvalid));
    case.signature = signed_by("other");
    assert_eq!(case.result(), Err(ErrorCode::SignatureInvalid));
    case.signature = signed_by("beta");
    assert!(case.result().is_ok());
}

#[test]
fn the_deny_list_always_wins() {
    for mode in [TrustMode::Open, TrustMode::Approved, TrustMode::Locked] {
        let mut case = Case::new(mode);
        case.approval = Some(case.approval(Grants::default()));
        case.lock = Some(Case::lock(case.files.clone()));
        assert!(case.result().is_ok(), "the control");
        for entry in [case.files.digest().to_string(), "report".to_owned()] {
            case.policy.deny = vec![DenyEntry::parse("other").unwrap(), DenyEntry::parse(&entry).unwrap()];
            assert_eq!(case.result(), Err(ErrorCode::Denied), "{entry}");
        }
        case.policy.deny = vec![DenyEntry::parse("repor").unwrap()];
        assert!(case.result().is_ok(), "only whole names match");
    }
    for bad in ["sha256:12", "a/b", ""] {
        assert!(DenyEntry::parse(bad).is_err(), "{bad:?}");
    }
}
