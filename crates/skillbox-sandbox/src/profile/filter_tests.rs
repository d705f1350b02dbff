//! Tests of the filters of the shipped profiles.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::json;

use super::profiles::Profiles;
use crate::seccomp::{
    Filter, NativeCall, SyscallRule, assert_call_matches_rules, assert_filter_matches_rules, docker_seccomp_profile,
    longest_path,
};

static DEFAULT: LazyLock<(Vec<SyscallRule>, Filter)> = LazyLock::new(|| {
    let rules = Profiles::shipped().get("default").unwrap().syscalls.rules().to_vec();
    let filter = Filter::compile(&rules).unwrap();
    (rules, filter)
});

#[test]
fn every_shipped_filter_matches_its_rules() {
    for profile in Profiles::shipped().iter() {
        assert_filter_matches_rules(profile.syscalls.rules());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_default_filter_matches_its_rules_for_random_calls(number in 0_u32..600, arguments in any::<[u64; 6]>()) {
        let (rules, filter) = &*DEFAULT;
        assert_call_matches_rules(rules, filter, &NativeCall { number, arguments });
    }
}

#[test]
fn the_filter_is_a_tree_and_not_a_list() {
    let (_, filter) = &*DEFAULT;
    assert!(filter.program().len() < 320, "{} instructions", filter.program().len());
    // No path is longer than a search tree over the numbers and another one over an argument.
    let longest = longest_path(filter);
    assert!(longest.unwrap() <= 24, "{longest:?} instructions");
}

#[test]
fn the_docker_profile_refuses_with_an_errno_of_its_own() {
    let profile = docker_seccomp_profile(&DEFAULT.0);
    let entries = profile["syscalls"].as_array().unwrap();
    let count_of = |name: &str| {
        entries
            .iter()
            .filter(|entry| entry["names"].as_array().unwrap().contains(&json!(name)))
            .count()
    };
    assert!(count_of("read") == 1 && count_of("socket") > 1 && count_of("prlimit64") > 2);
    for entry in entries {
        assert!(
            entry["action"] == "SCMP_ACT_ALLOW" || entry["errnoRet"].is_u64(),
            "{entry}"
        );
        assert!(entry["args"].as_array().unwrap().len() <= 2, "{entry}");
    }
}
