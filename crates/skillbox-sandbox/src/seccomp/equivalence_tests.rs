//! Tests that a compiled filter decides as its rules say, for all numbers, sampled arguments and foreign architectures.
//!
//! A BPF interpreter runs the filter, and the result is compared with a direct reading of the rules.

use proptest::prelude::*;

use super::bpf::{
    ALLOW, FAIL_ENOSYS, FAIL_EPERM, Instruction, JUMP, JUMP_IF_ANY_BIT, JUMP_IF_AT_LEAST, JUMP_IF_EQUAL, LOAD,
    NATIVE_ARCHITECTURE, RETURN, errno_return_value,
};
use super::compile::Filter;
use super::constants::{parse_constant, parse_errno};
use super::rule::{ArgumentTest, SyscallAction, SyscallRule};
use super::syscall_table::native_syscalls;

/// A system call of this architecture.
pub(crate) struct NativeCall {
    pub number: u32,
    pub arguments: [u64; 6],
}

/// The data that the kernel passes to a filter.
struct SeccompData<'a> {
    architecture: u32,
    call: &'a NativeCall,
}

impl SeccompData<'_> {
    fn word_at(&self, offset: u32) -> u32 {
        match offset {
            0 => self.call.number,
            4 => self.architecture,
            _ => {
                let argument = self.call.arguments[(offset as usize - 16) / 8];
                if offset.is_multiple_of(8) {
                    argument as u32
                } else {
                    (argument >> 32) as u32
                }
            }
        }
    }
}

/// The result of running a filter.
struct FilterRun {
    return_value: u32,
    /// The number of executed instructions.
    length: usize,
}

/// Runs a filter as the kernel does.
fn run_filter(program: &[Instruction], data: &SeccompData<'_>) -> FilterRun {
    let (mut accumulator, mut at, mut length) = (0, 0, 0);
    loop {
        let Instruction { code, jt, jf, k } = program[at];
        length += 1;
        let skip = |holds: bool| if holds { usize::from(jt) } else { usize::from(jf) };
        at += 1 + match code {
            LOAD => {
                accumulator = data.word_at(k);
                0
            }
            JUMP => k as usize,
            JUMP_IF_EQUAL => skip(accumulator == k),
            JUMP_IF_AT_LEAST => skip(accumulator >= k),
            JUMP_IF_ANY_BIT => skip(accumulator & k != 0),
            RETURN => {
                return FilterRun {
                    return_value: k,
                    length,
                };
            }
            other => panic!("unexpected operation {other:#x}"),
        };
    }
}

/// The return value that follows from the rules without compiling them.
fn expected_return_value(rules: &[SyscallRule], data: &SeccompData<'_>) -> u32 {
    let call = data.call;
    if data.architecture != NATIVE_ARCHITECTURE || (cfg!(target_arch = "x86_64") && call.number >= 0x4000_0000) {
        return FAIL_EPERM;
    }
    let name = syscall_name(call.number);
    let rule = rules
        .iter()
        .find(|rule| rule.calls.iter().any(|known| Some(known.as_str()) == name));
    match rule.map(|rule| &rule.action) {
        None => FAIL_ENOSYS,
        Some(SyscallAction::Allow) => ALLOW,
        Some(SyscallAction::Refuse { errno }) => errno_return_value(errno.value).unwrap(),
        Some(SyscallAction::AllowIf {
            argument,
            test,
            or,
            otherwise,
        }) => {
            let passes = |argument: u8, test: &ArgumentTest| test.passes(call.arguments[usize::from(argument)]);
            if passes(*argument, test) || or.as_ref().is_some_and(|or| passes(or.argument, &or.test)) {
                ALLOW
            } else {
                errno_return_value(otherwise.value).unwrap()
            }
        }
    }
}

fn syscall_name(number: u32) -> Option<&'static str> {
    native_syscalls()
        .find(|(known, _)| *known == number)
        .map(|(_, name)| name)
}

fn assert_data_matches_rules(rules: &[SyscallRule], filter: &Filter, data: &SeccompData<'_>) {
    assert_eq!(
        run_filter(filter.program(), data).return_value,
        expected_return_value(rules, data),
        "call {} of architecture {:#x} with {:x?}",
        data.call.number,
        data.architecture,
        data.call.arguments
    );
}

/// Asserts that the filter decides about a native call as the rules say.
pub(crate) fn assert_call_matches_rules(rules: &[SyscallRule], filter: &Filter, call: &NativeCall) {
    let architecture = NATIVE_ARCHITECTURE;
    assert_data_matches_rules(rules, filter, &SeccompData { architecture, call });
}

/// Asserts that the rules compile to a filter that decides as they say, for every number and every tested argument.
pub(crate) fn assert_filter_matches_rules(rules: &[SyscallRule]) {
    let filter = Filter::compile(rules).unwrap();
    let arguments = boundary_arguments(rules);
    let is_conditional = |number: u32| {
        let name = syscall_name(number);
        rules.iter().any(|rule| {
            matches!(rule.action, SyscallAction::AllowIf { .. })
                && rule.calls.iter().any(|call| Some(call.as_str()) == name)
        })
    };
    for number in (0..2048)
        .chain(0x4000_0000..0x4000_0400)
        .chain([u32::MAX, u32::MAX - 1])
    {
        let call = NativeCall {
            number,
            arguments: [0; 6],
        };
        for architecture in [NATIVE_ARCHITECTURE, 0x4000_0003, 0xc000_00b7, 0xc000_003e, 0] {
            let data = SeccompData {
                architecture,
                call: &call,
            };
            assert_data_matches_rules(rules, &filter, &data);
        }
        if is_conditional(number) {
            for value in &arguments {
                // A rule may test two arguments: all alike, and the third one null or not.
                for third in [*value, 0, 1 << 32] {
                    let mut arguments = [*value; 6];
                    arguments[2] = third;
                    assert_call_matches_rules(rules, &filter, &NativeCall { number, arguments });
                }
            }
        }
    }
}

/// Values around every constant that a rule tests, with and without upper bits, which the kernel ignores.
fn boundary_arguments(rules: &[SyscallRule]) -> Vec<u64> {
    use ArgumentTest::{AnyOf, NoBitsOf, NoneOf};
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

/// The largest number of instructions that the filter executes for a native call without arguments.
pub(crate) fn longest_path(filter: &Filter) -> Option<usize> {
    let lengths = native_syscalls().map(|(number, _)| {
        let call = NativeCall {
            number,
            arguments: [0; 6],
        };
        let data = SeccompData {
            architecture: NATIVE_ARCHITECTURE,
            call: &call,
        };
        run_filter(filter.program(), &data).length
    });
    lengths.max()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_rules_compile_to_what_they_say(actions in prop::collection::vec(0_u8..4, 350)) {
        let errno = |name| parse_errno(name).unwrap();
        let rules: Vec<SyscallRule> = native_syscalls()
            .zip(&actions)
            .map(|((_, name), action)| SyscallRule {
                calls: vec![name.to_owned()],
                action: match action {
                    0 => SyscallAction::Allow,
                    1 => SyscallAction::Refuse { errno: errno("EPERM") },
                    2 => SyscallAction::Refuse { errno: errno("EACCES") },
                    _ => SyscallAction::AllowIf {
                        argument: 1,
                        test: ArgumentTest::AnyOf(vec![parse_constant("3").unwrap(), parse_constant("9").unwrap()]),
                        or: None,
                        otherwise: errno("EINVAL"),
                    },
                },
                reason: "a test".to_owned(),
            })
            .collect();
        let filter = Filter::compile(&rules).unwrap();
        for number in 0..500 {
            for value in [0, 3, 4, 9] {
                assert_call_matches_rules(&rules, &filter, &NativeCall { number, arguments: [value; 6] });
            }
        }
    }
}
