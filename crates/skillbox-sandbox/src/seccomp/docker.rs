//! The rules as a seccomp profile for Docker.

use serde_json::{Value, json};

use super::rule::{ArgumentTest, SyscallAction, SyscallRule};

/// The seccomp profile for Docker that decides as these rules do.
///
/// Every refusal has its own `errnoRet`, because engines before version 22 ignore `defaultErrnoRet`. Docker combines
/// several tests of one argument with *or*, so "none of these" is written as the blocks of numbers between the
/// constants. Docker compares 64 bits, so each test is masked to the lower half, which is all that the kernel uses.
pub fn docker_seccomp_profile(rules: &[SyscallRule]) -> Value {
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
            (values.iter().copied().map(single).collect(), blocks_without(&values))
        }
        ArgumentTest::NoneOf(list) => {
            let values: Vec<u32> = list.iter().map(|constant| constant.value).collect();
            (blocks_without(&values), values.iter().copied().map(single).collect())
        }
        ArgumentTest::NoBitsOf(list) => {
            let bits = list.iter().fold(0, |bits, constant| bits | constant.value);
            let each = (0..u32::BITS).map(|bit| 1 << bit).filter(|bit| bits & bit != 0);
            let any: Vec<Block> = each.map(|bit| Block { mask: bit, value: bit }).collect();
            (vec![Block { mask: bits, value: 0 }], any)
        }
    }
}

/// All 32-bit numbers except these, as blocks with a common prefix.
fn blocks_without(values: &[u32]) -> Vec<Block> {
    fn split(excluded: &[u32], block: Block, bit: u32, found: &mut Vec<Block>) {
        if excluded.is_empty() {
            found.push(block);
        } else if bit > 0 {
            let next = 1 << (bit - 1);
            for side in [0, next] {
                let half = Block {
                    mask: block.mask | next,
                    value: block.value | side,
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
    split(values, Block { mask: 0, value: 0 }, u32::BITS, &mut found);
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::seccomp::parse_constant;

    proptest! {
        #[test]
        fn blocks_decide_as_the_test_does(values in prop::collection::vec(any::<u32>(), 1..6), probe in any::<u32>()) {
            let constants: Vec<_> = values.iter().map(|value| parse_constant(&value.to_string()).unwrap()).collect();
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
}
