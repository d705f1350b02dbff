//! Converts the rules to a seccomp profile for Docker.

use serde_json::{Value, json};

use super::rule::{ArgumentTest, SyscallAction, SyscallRule};

/// Converts rules to a seccomp profile for Docker that decides in the same way.
///
/// - Every refusal has its own `errnoRet`, because engines before version 22 ignore `defaultErrnoRet`.
/// - Docker combines several tests of one argument with *or*. "None of these" is therefore written as a list of the
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
    let allow = |test: Option<Value>| json!({"names": rule.calls, "action": "SCMP_ACT_ALLOW", "args": Vec::from_iter(test), "comment": rule.reason});
    let refuse = |errno: u32, test: Option<Value>| {
        let mut entry = allow(test);
        entry["action"] = json!("SCMP_ACT_ERRNO");
        entry["errnoRet"] = json!(errno);
        entry
    };
    match &rule.action {
        SyscallAction::Allow => vec![allow(None)],
        SyscallAction::Refuse { errno } => vec![refuse(errno.value, None)],
        SyscallAction::AllowIf {
            argument,
            test,
            otherwise,
        } => {
            let masked = |numbers: &MaskedNumbers| {
                Some(
                    json!({"index": argument, "value": numbers.mask, "valueTwo": numbers.value, "op": "SCMP_CMP_MASKED_EQ"}),
                )
            };
            let (pass, fail) = number_sets(test);
            let passing = pass.iter().map(|numbers| allow(masked(numbers)));
            let failing = fail.iter().map(|numbers| refuse(otherwise.value, masked(numbers)));
            passing.chain(failing).collect()
        }
    }
}

/// The set of numbers whose bits in `mask` equal those of `value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MaskedNumbers {
    mask: u32,
    value: u32,
}

/// The numbers that pass a test, and those that do not.
fn number_sets(test: &ArgumentTest) -> (Vec<MaskedNumbers>, Vec<MaskedNumbers>) {
    let single = |value| MaskedNumbers { mask: u32::MAX, value };
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
            let any: Vec<MaskedNumbers> = each.map(|bit| MaskedNumbers { mask: bit, value: bit }).collect();
            (vec![MaskedNumbers { mask: bits, value: 0 }], any)
        }
    }
}

/// All 32-bit numbers except these, as sets of numbers with a common prefix.
fn all_numbers_except(values: &[u32]) -> Vec<MaskedNumbers> {
    fn split(excluded: &[u32], numbers: MaskedNumbers, bit: u32, found: &mut Vec<MaskedNumbers>) {
        if excluded.is_empty() {
            found.push(numbers);
        } else if bit > 0 {
            let next = 1 << (bit - 1);
            for side in [0, next] {
                let half = MaskedNumbers {
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
    split(values, MaskedNumbers { mask: 0, value: 0 }, u32::BITS, &mut found);
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
                let (pass, fail) = number_sets(&test);
                let inside = |sets: &[MaskedNumbers], probe: u32| sets.iter().any(|numbers| probe & numbers.mask == numbers.value);
                for probe in values.iter().copied().chain([probe, probe & values[0], 0, u32::MAX]) {
                    prop_assert_eq!(inside(&pass, probe), test.passes(probe));
                    prop_assert_eq!(inside(&fail, probe), !test.passes(probe));
                }
            }
        }
    }
}
