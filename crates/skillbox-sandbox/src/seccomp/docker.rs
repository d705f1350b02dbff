//! Converts the rules to a seccomp profile for Docker.

use serde_json::{Value, json};

use super::rule::{ArgumentTest, SyscallAction, SyscallRule};

/// Converts rules to a seccomp profile for Docker that decides in the same way.
///
/// - Every refusal has its own `errnoRet`, because engines before version 22 ignore `defaultErrnoRet`.
/// - Docker combines several tests of one argument with *or*, and those of different arguments with *and*. "None of these" is therefore written as a list of the
///   numbers that remain, in sets with a common prefix.
/// - Docker compares 64 bits. Each test is masked to the lower 32 bits, because the kernel ignores the upper ones.
pub fn docker_seccomp_profile(rules: &[SyscallRule]) -> Value {
    let entries: Vec<Value> = rules.iter().flat_map(docker_entries).collect();
    json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": libc::ENOSYS,
        "archMap": [
            {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": []},
            {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": []},
        ],
        "syscalls": entries,
    })
}

fn docker_entries(rule: &SyscallRule) -> Vec<Value> {
    let allow = |tests: Vec<Value>| json!({"names": rule.calls, "action": "SCMP_ACT_ALLOW", "args": tests, "comment": rule.reason});
    let refuse = |errno: u32, tests: Vec<Value>| {
        let mut entry = allow(tests);
        entry["action"] = json!("SCMP_ACT_ERRNO");
        entry["errnoRet"] = json!(errno);
        entry
    };
    match &rule.action {
        SyscallAction::Allow => vec![allow(Vec::new())],
        SyscallAction::Refuse { errno } => vec![refuse(errno.value, Vec::new())],
        SyscallAction::AllowIf {
            argument,
            test,
            or,
            otherwise,
        } => {
            let (pass, fail) = docker_tests(*argument, test);
            let mut entries: Vec<Value> = pass.into_iter().map(|test| allow(vec![test])).collect();
            let or = or.as_ref().map(|or| docker_tests(or.argument, &or.test));
            for failed in fail {
                let Some((pass, fail)) = &or else {
                    entries.push(refuse(otherwise.value, vec![failed]));
                    continue;
                };
                entries.extend(pass.iter().map(|test| allow(vec![failed.clone(), test.clone()])));
                let refusals = fail.iter().map(|test| vec![failed.clone(), test.clone()]);
                entries.extend(refusals.map(|tests| refuse(otherwise.value, tests)));
            }
            entries
        }
    }
}

/// The tests in Docker's format of the values that pass, and of those that do not.
fn docker_tests(argument: u8, test: &ArgumentTest) -> (Vec<Value>, Vec<Value>) {
    if *test == ArgumentTest::IsNull {
        let compare = |operator: &str| vec![json!({"index": argument, "value": 0, "op": operator})];
        return (compare("SCMP_CMP_EQ"), compare("SCMP_CMP_NE"));
    }
    let masked = |numbers: MaskedEqual| json!({"index": argument, "value": numbers.mask, "valueTwo": numbers.value, "op": "SCMP_CMP_MASKED_EQ"});
    let (pass, fail) = passing_and_failing_patterns(test);
    (
        pass.into_iter().map(masked).collect(),
        fail.into_iter().map(masked).collect(),
    )
}

/// A test for numbers whose bits in `mask` equal those of `value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MaskedEqual {
    mask: u32,
    value: u32,
}

/// The patterns of the 32-bit numbers that pass a test, and of those that do not.
fn passing_and_failing_patterns(test: &ArgumentTest) -> (Vec<MaskedEqual>, Vec<MaskedEqual>) {
    let single = |value| MaskedEqual { mask: u32::MAX, value };
    match test {
        ArgumentTest::AnyOf(list) => {
            let values: Vec<u32> = list.iter().map(|constant| constant.value).collect();
            (
                values.iter().copied().map(single).collect(),
                all_numbers_except(&values),
            )
        }
        ArgumentTest::NoneOf(list) => {
            let values: Vec<u32> = list.iter().map(|constant| constant.value).collect();
            (
                all_numbers_except(&values),
                values.iter().copied().map(single).collect(),
            )
        }
        ArgumentTest::NoBitsOf(list) => {
            let bits = list.iter().fold(0, |bits, constant| bits | constant.value);
            let each = (0..u32::BITS).map(|bit| 1 << bit).filter(|bit| bits & bit != 0);
            let any: Vec<MaskedEqual> = each.map(|bit| MaskedEqual { mask: bit, value: bit }).collect();
            (vec![MaskedEqual { mask: bits, value: 0 }], any)
        }
        ArgumentTest::IsNull => (vec![single(0)], all_numbers_except(&[0])),
    }
}

/// All 32-bit numbers except these, as patterns with a common prefix.
fn all_numbers_except(values: &[u32]) -> Vec<MaskedEqual> {
    fn split(excluded: &[u32], numbers: MaskedEqual, bit: u32, found: &mut Vec<MaskedEqual>) {
        if excluded.is_empty() {
            found.push(numbers);
        } else if bit > 0 {
            let next = 1 << (bit - 1);
            for side in [0, next] {
                let half = MaskedEqual {
                    mask: numbers.mask | next,
                    value: numbers.value | side,
                };
                let inside: Vec<u32> = excluded
                    .iter()
                    .copied()
                    .filter(|value| value & half.mask == half.value)
                    .collect();
                split(&inside, half, bit - 1, found);
            }
        }
    }
    let mut found = Vec::new();
    split(values, MaskedEqual { mask: 0, value: 0 }, u32::BITS, &mut found);
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::seccomp::parse_constant;

    proptest! {
        #[test]
        fn number_sets_decide_as_the_test_does(values in prop::collection::vec(any::<u32>(), 1..6), probe in any::<u32>()) {
            let constants: Vec<_> = values.iter().map(|value| parse_constant(&value.to_string()).unwrap()).collect();
            for test in [
                ArgumentTest::AnyOf(constants.clone()),
                ArgumentTest::NoneOf(constants.clone()),
                ArgumentTest::NoBitsOf(constants),
            ] {
                let (pass, fail) = passing_and_failing_patterns(&test);
                let inside = |sets: &[MaskedEqual], probe: u32| sets.iter().any(|numbers| probe & numbers.mask == numbers.value);
                for probe in values.iter().copied().chain([probe, probe & values[0], 0, u32::MAX]) {
                    prop_assert_eq!(inside(&pass, probe), test.passes(u64::from(probe)));
                    prop_assert_eq!(inside(&fail, probe), !test.passes(u64::from(probe)));
                }
            }
        }
    }
}
