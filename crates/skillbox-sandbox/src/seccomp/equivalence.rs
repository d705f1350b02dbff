//! The compiled filter against its rules: every number, sampled arguments, foreign architectures.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::bpf::{
    ALLOW, Instruction, JUMP, JUMP_IF_AT_LEAST, JUMP_IF_BITS, JUMP_IF_EQUAL, LOAD, NATIVE_ARCHITECTURE, RETURN,
    fail_with,
};
use super::calls::known_calls;
use super::compile::Filter;
use super::rule::{SyscallAction, SyscallRule};
use crate::profile::Profiles;

struct Call {
    number: u32,
    architecture: u32,
    arguments: [u64; 6],
}

impl Call {
    fn word(&self, offset: u32) -> u32 {
        match offset {
            0 => self.number,
            4 => self.architecture,
            _ => {
                let argument = self.arguments[(offset as usize - 16) / 8];
                if offset.is_multiple_of(8) {
                    argument as u32
                } else {
                    (argument >> 32) as u32
                }
            }
        }
    }
}

/// Runs a filter as the kernel would.
fn interpret(program: &[Instruction], call: &Call) -> u32 {
    let (mut accumulator, mut at) = (0, 0);
    loop {
        let Instruction { code, jt, jf, k } = program[at];
        let skip = |holds: bool| if holds { usize::from(jt) } else { usize::from(jf) };
        at += 1 + match code {
            LOAD => {
                accumulator = call.word(k);
                0
            }
            JUMP => k as usize,
            JUMP_IF_EQUAL => skip(accumulator == k),
            JUMP_IF_AT_LEAST => skip(accumulator >= k),
            JUMP_IF_BITS => skip(accumulator & k != 0),
            RETURN => return k,
            other => panic!("unexpected operation {other:#x}"),
        };
    }
}

/// What the rules say, read one by one.
fn by_the_rules(rules: &[SyscallRule], call: &Call) -> u32 {
    if call.architecture != NATIVE_ARCHITECTURE || (cfg!(target_arch = "x86_64") && call.number >= 0x4000_0000) {
        return fail_with(libc::EPERM as u32);
    }
    let name = known_calls()
        .find(|(number, _)| *number == call.number)
        .map(|(_, name)| name);
    let rule = rules
        .iter()
        .find(|rule| rule.calls.iter().any(|known| Some(known.as_str()) == name));
    match rule.map(|rule| &rule.action) {
        None => fail_with(libc::ENOSYS as u32),
        Some(SyscallAction::Allow) => ALLOW,
        Some(SyscallAction::Refuse { errno }) => fail_with(errno.value),
        Some(SyscallAction::AllowIf {
            argument,
            test,
            otherwise,
        }) => {
            if test.passes(call.arguments[usize::from(*argument)] as u32) {
                ALLOW
            } else {
                fail_with(otherwise.value)
            }
        }
    }
}

fn check(rules: &[SyscallRule], filter: &Filter, call: &Call) {
    assert_eq!(
        interpret(filter.program(), call),
        by_the_rules(rules, call),
        "call {} of architecture {:#x} with {:x?}",
        call.number,
        call.architecture,
        call.arguments
    );
}

/// Values around every constant that a rule looks at, with and without upper bits, which the kernel ignores.
fn telling_arguments(rules: &[SyscallRule]) -> Vec<u64> {
    use super::rule::ArgumentTest::{AnyOf, NoBitsOf, NoneOf};
    let mut values = vec![0, 1, u64::MAX, u64::from(u32::MAX)];
    for rule in rules {
        if let SyscallAction::AllowIf {
            test: AnyOf(list) | NoneOf(list) | NoBitsOf(list),
            ..
        } = &rule.action
        {
            for constant in list {
                let value = u64::from(constant.value);
                values.extend([value, value.wrapping_sub(1), value + 1, value | 1 << 40]);
            }
        }
    }
    values
}

#[test]
fn every_shipped_filter_says_what_its_rules_say() {
    for profile in Profiles::shipped().iter() {
        let rules = profile.syscalls.rules();
        let filter = Filter::compile(rules).unwrap();
        let arguments = telling_arguments(rules);
        let conditional = |number: u32| {
            let name = known_calls()
                .find(|(known, _)| *known == number)
                .map(|(_, name)| name.to_owned());
            rules.iter().any(|rule| {
                matches!(rule.action, SyscallAction::AllowIf { .. })
                    && name.as_ref().is_some_and(|name| rule.calls.contains(name))
            })
        };
        for number in (0..2048)
            .chain(0x4000_0000..0x4000_0400)
            .chain([u32::MAX, u32::MAX - 1])
        {
            for architecture in [NATIVE_ARCHITECTURE, 0x4000_0003, 0xc000_00b7, 0xc000_003e, 0] {
                check(
                    rules,
                    &filter,
                    &Call {
                        number,
                        architecture,
                        arguments: [0; 6],
                    },
                );
            }
            if conditional(number) {
                for value in &arguments {
                    check(
                        rules,
                        &filter,
                        &Call {
                            number,
                            architecture: NATIVE_ARCHITECTURE,
                            arguments: [*value; 6],
                        },
                    );
                }
            }
        }
    }
}

static DEFAULT: LazyLock<(Vec<SyscallRule>, Filter)> = LazyLock::new(|| {
    let rules = Profiles::shipped().get("default").unwrap().syscalls.rules().to_vec();
    let filter = Filter::compile(&rules).unwrap();
    (rules, filter)
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_calls_are_judged_alike(number in 0_u32..600, arguments in any::<[u64; 6]>()) {
        let (rules, filter) = &*DEFAULT;
        check(rules, filter, &Call { number, architecture: NATIVE_ARCHITECTURE, arguments });
    }

    #[test]
    fn random_rules_compile_to_what_they_say(actions in prop::collection::vec(0_u8..4, 350)) {
        use super::{ArgumentTest, errno_named, value_of};
        let errno = |name| errno_named(name).unwrap();
        let rules: Vec<SyscallRule> = known_calls()
            .zip(&actions)
            .map(|((_, name), action)| SyscallRule {
                calls: vec![name.to_owned()],
                action: match action {
                    0 => SyscallAction::Allow,
                    1 => SyscallAction::Refuse { errno: errno("EPERM") },
                    2 => SyscallAction::Refuse { errno: errno("EACCES") },
                    _ => SyscallAction::AllowIf {
                        argument: 1,
                        test: ArgumentTest::AnyOf(vec![value_of("3").unwrap(), value_of("9").unwrap()]),
                        otherwise: errno("EINVAL"),
                    },
                },
                reason: "a test".to_owned(),
            })
            .collect();
        let filter = Filter::compile(&rules).unwrap();
        for number in 0..500 {
            for value in [0, 3, 4, 9] {
                check(&rules, &filter, &Call { number, architecture: NATIVE_ARCHITECTURE, arguments: [value; 6] });
            }
        }
    }
}

#[test]
fn the_filter_is_a_tree_and_not_a_list() {
    let profiles = Profiles::shipped();
    let filter = Filter::compile(profiles.get("default").unwrap().syscalls.rules()).unwrap();
    assert!(filter.program().len() < 320, "{} instructions", filter.program().len());
    // No path through the filter is longer than a search tree over the numbers and one over an argument.
    let deepest = known_calls()
        .map(|(number, _)| {
            let call = Call {
                number,
                architecture: NATIVE_ARCHITECTURE,
                arguments: [0; 6],
            };
            steps(filter.program(), &call)
        })
        .max();
    assert!(deepest.unwrap() <= 24, "{deepest:?} steps");
}

fn steps(program: &[Instruction], call: &Call) -> usize {
    (1..=program.len())
        .find(|length| {
            let mut cut = program.to_vec();
            for instruction in &mut cut {
                if instruction.code == RETURN {
                    instruction.k = ALLOW;
                }
            }
            walk(&cut, call) == *length
        })
        .unwrap()
}

fn walk(program: &[Instruction], call: &Call) -> usize {
    let (mut accumulator, mut at, mut count) = (0, 0, 0);
    loop {
        let Instruction { code, jt, jf, k } = program[at];
        count += 1;
        let skip = |holds: bool| if holds { usize::from(jt) } else { usize::from(jf) };
        at += 1 + match code {
            LOAD => {
                accumulator = call.word(k);
                0
            }
            JUMP => k as usize,
            JUMP_IF_EQUAL => skip(accumulator == k),
            JUMP_IF_AT_LEAST => skip(accumulator >= k),
            JUMP_IF_BITS => skip(accumulator & k != 0),
            _ => return count,
        };
    }
}
