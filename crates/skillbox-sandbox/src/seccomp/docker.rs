//! The same rules in the form that Docker takes.

use serde_json::{Value, json};

use super::rule::{ArgumentTest, SyscallAction, SyscallRule};

/// Docker's seccomp profile with the meaning of these rules.
///
/// Every refusal carries its own `errnoRet`: engines before 22 ignore `defaultErrnoRet`. Docker joins several tests
/// of one argument by *or*, so "none of these" is written as the blocks of numbers between them; and it compares 64
/// bits, so each test is masked to the lower half, which is all that the kernel looks at.
pub fn docker_profile(rules: &[SyscallRule]) -> Value {
    let entries: Vec<Value> = rules.iter().flat_map(entries).collect();
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

fn entries(rule: &SyscallRule) -> Vec<Value> {
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
            let masked = |block: &Block| {
                Some(
                    json!({"index": argument, "value": block.mask, "valueTwo": block.value, "op": "SCMP_CMP_MASKED_EQ"}),
                )
            };
            let (pass, fail) = blocks(test);
            let passing = pass.iter().map(|block| allow(masked(block)));
            let failing = fail.iter().map(|block| refuse(otherwise.value, masked(block)));
            passing.chain(failing).collect()
        }
    }
}

/// The numbers that agree with `value` on the bits of `mask`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    mask: u32,
    value: u32,
}

/// The numbers that pass a test, and those that do not.
fn blocks(test: &ArgumentTest) -> (Vec<Block>, Vec<Block>) {
    let single = |value| Block { mask: u32::MAX, value };
    match test {
        ArgumentTest::AnyOf(list) => {
            let values: Vec<u32> = list.iter().map(|constant| constant.value).collect();
            (values.iter().copied().map(single).collect(), all_but(&values))
        }
        ArgumentTest::NoneOf(list) => {
            let values: Vec<u32> = list.iter().map(|constant| constant.value).collect();
            (all_but(&values), values.iter().copied().map(single).collect())
        }
        ArgumentTest::NoBitsOf(list) => {
            let bits = list.iter().fold(0, |bits, constant| bits | constant.value);
            let each = (0..u32::BITS).map(|bit| 1 << bit).filter(|bit| bits & bit != 0);
            let any: Vec<Block> = each.map(|bit| Block { mask: bit, value: bit }).collect();
            (vec![Block { mask: bits, value: 0 }], any)
        }
    }
}

/// Every 32-bit number but these, as blocks with a common prefix.
fn all_but(values: &[u32]) -> Vec<Block> {
    fn split(values: &[u32], block: Block, bit: u32, found: &mut Vec<Block>) {
        if values.is_empty() {
            found.push(block);
        } else if bit > 0 {
            let next = 1 << (bit - 1);
            for side in [0, next] {
                let half = Block {
                    mask: block.mask | next,
                    value: block.value | side,
                };
                let inside: Vec<u32> = values
                    .iter()
                    .copied()
                    .filter(|value| value & half.mask == half.value)
                    .collect();
                split(&inside, half, bit - 1, found);
            }
        }
    }
    let mut found = Vec::new();
    split(values, Block { mask: 0, value: 0 }, u32::BITS, &mut found);
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::profile::Profiles;
    use crate::seccomp::value_of;

    proptest! {
        #[test]
        fn blocks_say_what_the_test_says(values in prop::collection::vec(any::<u32>(), 1..6), probe in any::<u32>()) {
            let constants: Vec<_> = values.iter().map(|value| value_of(&value.to_string()).unwrap()).collect();
            for test in [
                ArgumentTest::AnyOf(constants.clone()),
                ArgumentTest::NoneOf(constants.clone()),
                ArgumentTest::NoBitsOf(constants),
            ] {
                let (pass, fail) = blocks(&test);
                let inside = |blocks: &[Block], probe: u32| blocks.iter().any(|block| probe & block.mask == block.value);
                for probe in values.iter().copied().chain([probe, probe & values[0], 0, u32::MAX]) {
                    prop_assert_eq!(inside(&pass, probe), test.passes(probe));
                    prop_assert_eq!(inside(&fail, probe), !test.passes(probe));
                }
            }
        }
    }

    #[test]
    fn the_profile_for_docker_refuses_with_its_own_errors() {
        let profiles = Profiles::shipped();
        let profile = docker_profile(profiles.get("default").unwrap().syscalls.rules());
        let entries = profile["syscalls"].as_array().unwrap();
        let about = |name: &str| {
            entries
                .iter()
                .filter(|entry| entry["names"].as_array().unwrap().contains(&json!(name)))
                .count()
        };
        assert!(about("read") == 1 && about("socket") > 1 && about("ioctl") > 1);
        for entry in entries {
            assert!(
                entry["action"] == "SCMP_ACT_ALLOW" || entry["errnoRet"].is_u64(),
                "{entry}"
            );
            assert!(entry["args"].as_array().unwrap().len() <= 1, "{entry}");
        }
    }
}
