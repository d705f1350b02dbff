//! Compiles rules to a BPF program that is a binary search tree over the system call numbers.
//!
//! When a filter is loaded, the kernel runs it once for every system call number. A linear list of 360 comparisons
//! takes about a millisecond per sandbox; a search tree takes a twentieth of that.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::assembler::{Label, ReverseAssembler};
use super::bpf::{
    ALLOW, ARCHITECTURE_OFFSET, FAIL_ENOSYS, FAIL_EPERM, Instruction, JUMP_IF_ANY_BIT, JUMP_IF_AT_LEAST, JUMP_IF_EQUAL,
    LOAD, NATIVE_ARCHITECTURE, NUMBER_OFFSET, RETURN, UPPER_HALF, X32_BIT, argument_offset, errno_return_value,
};
use super::error::CompileError;
use super::rule::{ArgumentTest, Constant, SyscallAction, SyscallRule};
use super::syscall_table::{SyscallNumber, find_syscall};

/// A compiled system call filter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    program: Vec<Instruction>,
    allowed_count: usize,
}

impl Filter {
    /// Compiles the rules. A call that no rule names fails with `ENOSYS`, as on a kernel that lacks it.
    pub fn compile(rules: &[SyscallRule]) -> Result<Self, CompileError> {
        let actions = actions_by_number(rules)?;
        let allowed_count = actions
            .values()
            .filter(|action| !matches!(action, SyscallAction::Refuse { .. }))
            .count();
        let mut assembler = ReverseAssembler::default();
        let entry = emit_number_search(&mut assembler, &actions)?;
        let refuse_foreign = assembler.emit_return(FAIL_EPERM);
        let load_number = assembler.emit_before(LOAD, NUMBER_OFFSET, entry)?;
        assembler.emit_branch(JUMP_IF_EQUAL, NATIVE_ARCHITECTURE, load_number, refuse_foreign)?;
        assembler.emit(LOAD, ARCHITECTURE_OFFSET);
        Ok(Self {
            program: assembler.into_program()?,
            allowed_count,
        })
    }

    /// The instructions, in the order in which the kernel runs them.
    pub fn program(&self) -> &[Instruction] {
        &self.program
    }

    /// The same program after a check of fallocate(2), which fails with `EOPNOTSUPP` unless it frees space. Jumps are
    /// relative, so the rest stays as it is; programs write instead, as they do on file systems without this call.
    pub fn program_without_allocation(&self) -> Vec<Instruction> {
        const MODE_ARGUMENT: u32 = 16 + 8;
        let jump = |code, k, jt, jf| Instruction { code, jt, jf, k };
        let load = |k| Instruction {
            code: LOAD,
            jt: 0,
            jf: 0,
            k,
        };
        let check = [
            load(ARCHITECTURE_OFFSET),
            jump(JUMP_IF_EQUAL, NATIVE_ARCHITECTURE, 0, 5),
            load(NUMBER_OFFSET),
            jump(JUMP_IF_EQUAL, libc::SYS_fallocate as u32, 0, 3),
            load(MODE_ARGUMENT),
            jump(JUMP_IF_ANY_BIT, libc::FALLOC_FL_PUNCH_HOLE as u32, 1, 0),
            Instruction {
                code: RETURN,
                jt: 0,
                jf: 0,
                k: libc::SECCOMP_RET_ERRNO | libc::EOPNOTSUPP as u32,
            },
        ];
        check.into_iter().chain(self.program.iter().copied()).collect()
    }

    /// The number of system calls of this architecture that are allowed, some of them on a condition.
    pub fn allowed_count(&self) -> usize {
        self.allowed_count
    }
}

fn actions_by_number(rules: &[SyscallRule]) -> Result<BTreeMap<u32, &SyscallAction>, CompileError> {
    let mut actions = BTreeMap::new();
    for rule in rules {
        for call in &rule.calls {
            match find_syscall(call) {
                Some(SyscallNumber::Native(number)) => {
                    if actions.insert(number, &rule.action).is_some() {
                        return Err(CompileError::NamedTwice(call.clone()));
                    }
                }
                Some(SyscallNumber::OtherArchitecture) => {}
                None => return Err(CompileError::UnknownCall(call.clone())),
            }
        }
    }
    Ok(actions)
}

/// Emits the search tree that finds the action for the loaded system call number.
fn emit_number_search(
    assembler: &mut ReverseAssembler,
    actions: &BTreeMap<u32, &SyscallAction>,
) -> Result<Label, CompileError> {
    let call_without_rule = assembler.emit_return(FAIL_ENOSYS);
    let mut labels_by_start: BTreeMap<u32, Label> = BTreeMap::from([(0, call_without_rule)]);
    for (number, action) in actions {
        let label = emit_action(assembler, action)?;
        labels_by_start.insert(*number, label);
        labels_by_start.entry(number + 1).or_insert(call_without_rule);
    }
    if let Some(x32) = X32_BIT {
        let refused = assembler.emit_return(FAIL_EPERM);
        labels_by_start.insert(x32, refused);
    }
    emit_search_tree(assembler, labels_by_start)
}

fn emit_action(assembler: &mut ReverseAssembler, action: &SyscallAction) -> Result<Label, CompileError> {
    match action {
        SyscallAction::Allow => Ok(assembler.emit_return(ALLOW)),
        SyscallAction::Refuse { errno } => Ok(assembler.emit_return(refusal_return_value(errno)?)),
        SyscallAction::AllowIf {
            argument,
            test,
            or,
            otherwise,
        } => {
            let pass = assembler.emit_return(ALLOW);
            let mut fail = assembler.emit_return(refusal_return_value(otherwise)?);
            if let Some(other) = or {
                fail = emit_condition(assembler, other.argument, &other.test, pass, fail)?;
            }
            emit_condition(assembler, *argument, test, pass, fail)
        }
    }
}

/// Emits the instructions that load an argument and test it.
fn emit_condition(
    assembler: &mut ReverseAssembler,
    argument: u8,
    test: &ArgumentTest,
    pass: Label,
    fail: Label,
) -> Result<Label, CompileError> {
    let offset = argument_offset(argument).ok_or(CompileError::NoSuchArgument(argument))?;
    let mut pass = pass;
    if *test == ArgumentTest::IsNull {
        let upper = assembler.emit_branch(JUMP_IF_EQUAL, 0, pass, fail)?;
        pass = assembler.emit_before(LOAD, offset + UPPER_HALF, upper)?;
    }
    let decision = emit_test(assembler, test, pass, fail)?;
    assembler.emit_before(LOAD, offset, decision)
}

fn refusal_return_value(errno: &Constant) -> Result<u32, CompileError> {
    errno_return_value(errno.value).ok_or_else(|| CompileError::ErrnoTooLarge(errno.name.clone()))
}

/// Emits the test of the loaded half of an argument.
fn emit_test(
    assembler: &mut ReverseAssembler,
    test: &ArgumentTest,
    pass: Label,
    fail: Label,
) -> Result<Label, CompileError> {
    let (constants, listed, others) = match test {
        ArgumentTest::AnyOf(constants) => (constants, pass, fail),
        ArgumentTest::NoneOf(constants) => (constants, fail, pass),
        ArgumentTest::NoBitsOf(constants) => {
            let bits = constants.iter().fold(0, |bits, constant| bits | constant.value);
            return assembler.emit_branch(JUMP_IF_ANY_BIT, bits, fail, pass);
        }
        ArgumentTest::IsNull => return assembler.emit_branch(JUMP_IF_EQUAL, 0, pass, fail),
    };
    let mut labels_by_start: BTreeMap<u32, Label> = BTreeMap::from([(0, others)]);
    for constant in constants {
        labels_by_start.insert(constant.value, listed);
        if let Some(next) = constant.value.checked_add(1) {
            labels_by_start.entry(next).or_insert(others);
        }
    }
    emit_search_tree(assembler, labels_by_start)
}

/// Emits a search tree over ranges of numbers. The map contains the first number of each range and the label to jump
/// to.
fn emit_search_tree(
    assembler: &mut ReverseAssembler,
    labels_by_start: BTreeMap<u32, Label>,
) -> Result<Label, CompileError> {
    let mut ranges: Vec<(u32, Label)> = labels_by_start.into_iter().collect();
    ranges.dedup_by_key(|(_, label)| *label);
    emit_subtree(assembler, &ranges)
}

fn emit_subtree(assembler: &mut ReverseAssembler, ranges: &[(u32, Label)]) -> Result<Label, CompileError> {
    let [(_, first), rest @ ..] = ranges else {
        unreachable!("a range from 0 always exists");
    };
    if rest.iter().all(|(_, label)| label == first) {
        return Ok(*first);
    }
    let middle = ranges.len() / 2;
    let above = emit_subtree(assembler, &ranges[middle..])?;
    let below = emit_subtree(assembler, &ranges[..middle])?;
    assembler.emit_branch(JUMP_IF_AT_LEAST, ranges[middle].0, above, below)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(action: SyscallAction) -> SyscallRule {
        SyscallRule {
            calls: vec!["read".to_owned()],
            action,
            reason: "a test".to_owned(),
        }
    }

    fn constant(value: u32) -> Constant {
        Constant {
            name: value.to_string(),
            value,
        }
    }

    #[test]
    fn values_that_cannot_be_encoded_are_errors() {
        let refuse = |errno| Filter::compile(&[rule(SyscallAction::Refuse { errno: constant(errno) })]);
        assert!(refuse(4095).is_ok());
        assert_eq!(refuse(4096), Err(CompileError::ErrnoTooLarge("4096".to_owned())));
        // Without a check, the lower 16 bits would be 0: the call would "fail" with success.
        assert_eq!(refuse(1 << 16), Err(CompileError::ErrnoTooLarge("65536".to_owned())));
        let test_argument = |argument| {
            Filter::compile(&[rule(SyscallAction::AllowIf {
                argument,
                test: ArgumentTest::AnyOf(vec![constant(1)]),
                or: None,
                otherwise: constant(1),
            })])
        };
        assert!(test_argument(5).is_ok());
        assert_eq!(test_argument(6), Err(CompileError::NoSuchArgument(6)));
    }
}
