//! What holds for every decision.

use proptest::prelude::*;
use skillbox_model::{Grants, HostPort, SecretName};
use skillbox_trust::{Approval, DecisionInput, DenyEntry, SignatureStatus, TrustMode, TrustPolicy, decide};

use crate::fixture::{manifest, skill_name};

fn any_grants() -> impl Strategy<Value = Grants> {
    let host = prop::sample::select(vec![
        "a.example.org",
        "b.example.org",
        "*.example.org",
        "10.0.0.1",
        "a.example.org:80",
    ]);
    let secret = prop::sample::select(vec!["ONE", "TWO"]);
    (
        prop::collection::btree_set(host, 0..3),
        prop::collection::btree_set(secret, 0..2),
        any::<bool>(),
    )
        .prop_map(|(hosts, secrets, source_builds)| Grants {
            network: hosts.into_iter().map(|host| HostPort::parse(host).unwrap()).collect(),
            secrets: secrets
                .into_iter()
                .map(|name| SecretName::parse(name).unwrap())
                .collect(),
            source_builds,
            ..Grants::default()
        })
}

fn any_mode() -> impl Strategy<Value = TrustMode> {
    prop::sample::select(vec![TrustMode::Open, TrustMode::Approved, TrustMode::Locked])
}

proptest! {
    #[test]
    fn a_request_never_widens_what_was_granted(
        mode in any_mode(),
        [requested, declared, configured, one_call, approved] in [any_grants(), any_grants(), any_grants(), any_grants(), any_grants()],
        has_approval: bool,
        approves_other_digest: bool,
        is_denied: bool,
    ) {
        let files = manifest(&[("SKILL.md", "text")]);
        let other = manifest(&[("SKILL.md", "other")]);
        let digest = files.digest();
        let approved_files = if approves_other_digest { other } else { files };
        let approval = Approval::new(skill_name("s"), approved_files, approved.clone(), "alice", 1);
        let policy = TrustPolicy {
            mode,
            deny: is_denied.then_some(DenyEntry::Digest(digest)).into_iter().collect(),
            ..TrustPolicy::default()
        };
        let name = skill_name("s");
        let input = DecisionInput {
            skill: &name,
            digest: &digest,
            requested: &requested,
            declared: &declared,
            configured: &configured,
            one_call: &one_call,
            approval: has_approval.then_some(&approval),
            lock: None,
            signature: &SignatureStatus::Unsigned,
            now_ms: 10,
        };
        let counts = has_approval && !approves_other_digest;
        let granted = configured.union(&one_call).union(if counts { &approved } else { &configured });
        match decide(&policy, &input) {
            Ok(decision) => {
                prop_assert!(!is_denied && mode != TrustMode::Locked);
                prop_assert!(mode != TrustMode::Approved || counts);
                prop_assert_eq!(&decision.grants, &granted, "exactly what the operator granted");
                prop_assert!(granted.missing(&requested).is_empty());
                // The request and the declaration change nothing in the grants.
                let without = DecisionInput { requested: &Grants::default(), declared: &Grants::default(), ..input };
                prop_assert_eq!(decide(&policy, &without).unwrap().grants, decision.grants);
            }
            Err(refusal) => {
                let refused_for_a_reason = is_denied
                    || mode == TrustMode::Locked
                    || mode == TrustMode::Approved && !counts
                    || !granted.missing(&requested).is_empty();
                prop_assert!(refused_for_a_reason, "{}", refusal);
                prop_assert!(!refusal.fix().is_empty());
            }
        }
    }
}
