//! From rules to a decision tree of BPF.
//!
//! The kernel walks the filter once per system call number when it is loaded, so a linear list of 360 comparisons
//! costs about a millisecond per run; a tree over intervals of numbers costs a twentieth of that.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::bpf::{
    ALLOW, Instruction, JUMP, JUMP_IF_AT_LEAST, JUMP_IF_BITS, JUMP_IF_EQUAL, LOAD, NATIVE_ARCHITECTURE,
    OFFSET_ARCHITECTURE, OFFSET_NUMBER, RETURN, X32_BIT, fail_with, offset_argument,
};
use super::calls::{CallNumber, number_of};
use super::rule::{ArgumentTest, SyscallAction, SyscallRule};

/// The kernel's own limit on the length of a filter.
const MAX_INSTRUCTIONS: usize = 4096;

/// A compiled filter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    program: Vec<Instruction>,
    allowed: usize,
}

/// Why rules do not compile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// No architecture has a call of this name.
    #[error("no system call is named {0:?}")]
    UnknownCall(String),
    /// Two rules speak about one call.
    #[error("the system call {0:?} is named twice")]
    NamedTwice(String),
    /// The kernel would not take it.
    #[error("the filter has {0} instructions, more than the {MAX_INSTRUCTIONS} that the kernel takes")]
    TooLong(usize),
}

impl Filter {
    /// Compiles the rules. Whatever no rule names fails with `ENOSYS`, as on a kernel that lacks the call.
    pub fn compile(rules: &[SyscallRule]) -> Result<Self, CompileError> {
        let actions = actions_by_number(rules)?;
        let allowed = actions
            .values()
            .filter(|action| !matches!(action, SyscallAction::Refuse { .. }))
            .count();
        let mut code = Backwards::default();
        let entry = code.decide_number(&actions);
        let refuse_foreign = code.verdict(fail_with(libc::EPERM as u32));
        let load_number = code.push_then(LOAD, OFFSET_NUMBER, entry);
        code.push_branch(JUMP_IF_EQUAL, NATIVE_ARCHITECTURE, load_number, refuse_foreign);
        code.push(LOAD, OFFSET_ARCHITECTURE);
        let program = code.into_program();
        if program.len() > MAX_INSTRUCTIONS {
            return Err(CompileError::TooLong(program.len()));
        }
        Ok(Self { program, allowed })
    }

    /// The instructions, in the order the kernel takes them.
    pub fn program(&self) -> &[Instruction] {
        &self.program
    }

    /// How many calls of this architecture go through, some of them on conditions.
    pub fn allowed(&self) -> usize {
        self.allowed
    }
}

fn actions_by_number(rules: &[SyscallRule]) -> Result<BTreeMap<u32, &SyscallAction>, CompileError> {
    let mut actions = BTreeMap::new();
    for rule in rules {
        for call in &rule.calls {
            match number_of(call) {
                Some(CallNumber::Here(number)) => {
                    if actions.insert(number, &rule.action).is_some() {
                        return Err(CompileError::NamedTwice(call.clone()));
                    }
                }
                Some(CallNumber::Elsewhere) => {}
                None => return Err(CompileError::UnknownCall(call.clone())),
            }
        }
    }
    Ok(actions)
}

/// A program that is written from its end, so that every jump goes to something already there.
#[derive(Default)]
struct Backwards {
    code: Vec<Instruction>,
    verdicts: BTreeMap<u32, Label>,
}

/// A position, counted from the end of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Label(usize);

impl Backwards {
    fn push(&mut self, code: u16, k: u32) -> Label {
        self.push_raw(Instruction { code, jt: 0, jf: 0, k })
    }

    fn push_raw(&mut self, instruction: Instruction) -> Label {
        self.code.push(instruction);
        Label(self.code.len() - 1)
    }

    /// How many instructions the next one would have to skip to get to `target`.
    fn distance(&self, target: Label) -> usize {
        self.code.len() - target.0 - 1
    }

    /// An instruction that is followed by `next`, with a jump in between when `next` is not just behind it.
    fn push_then(&mut self, code: u16, k: u32, next: Label) -> Label {
        let distance = self.distance(next);
        if distance > 0 {
            self.push(JUMP, u32::try_from(distance).unwrap_or(u32::MAX));
        }
        self.push(code, k)
    }

    /// A label near enough for a conditional jump: `target` itself, a copy of its verdict, or a jump to it.
    fn near(&mut self, target: Label, room: usize) -> Label {
        if self.distance(target) + room <= usize::from(u8::MAX) {
            return target;
        }
        let there = self.code[target.0];
        if there.code == RETURN {
            let copy = self.push_raw(there);
            self.verdicts.insert(there.k, copy);
            return copy;
        }
        let distance = u32::try_from(self.distance(target)).unwrap_or(u32::MAX);
        self.push(JUMP, distance)
    }

    fn push_branch(&mut self, code: u16, k: u32, yes: Label, no: Label) -> Label {
        // Bringing the second one near can push the first one away by an instruction.
        let yes = self.near(yes, 1);
        let no = self.near(no, 0);
        let skip = |distance: usize| u8::try_from(distance).unwrap_or(u8::MAX);
        let (jt, jf) = (skip(self.distance(yes)), skip(self.distance(no)));
        self.push_raw(Instruction { code, jt, jf, k })
    }

    /// A verdict, shared with earlier uses of the same one.
    fn verdict(&mut self, value: u32) -> Label {
        match self.verdicts.get(&value) {
            Some(label) => *label,
            None => {
                let label = self.push(RETURN, value);
                self.verdicts.insert(value, label);
                label
            }
        }
    }

    /// A search tree: each entry holds from its start up to the start of the next.
    fn decide(&mut self, ranges: &[(u32, Label)]) -> Label {
        let [(_, first), rest @ ..] = ranges else {
            unreachable!("a range from 0 always exists");
        };
        if rest.iter().all(|(_, label)| label == first) {
            return *first;
        }
        let middle = ranges.len() / 2;
        let above = self.decide(&ranges[middle..]);
        let below = self.decide(&ranges[..middle]);
        self.push_branch(JUMP_IF_AT_LEAST, ranges[middle].0, above, below)
    }

    fn decide_number(&mut self, actions: &BTreeMap<u32, &SyscallAction>) -> Label {
        let unknown = self.verdict(fail_with(libc::ENOSYS as u32));
        let mut points: BTreeMap<u32, Label> = BTreeMap::from([(0, unknown)]);
        for (number, action) in actions {
            let label = self.action(action);
            points.insert(*number, label);
            points.entry(number + 1).or_insert(unknown);
        }
        if let Some(x32) = X32_BIT {
            let refused = self.verdict(fail_with(libc::EPERM as u32));
            points.insert(x32, refused);
        }
        let mut ranges: Vec<(u32, Label)> = points.into_iter().collect();
        ranges.dedup_by_key(|(_, label)| *label);
        self.decide(&ranges)
    }

    fn action(&mut self, action: &SyscallAction) -> Label {
        match action {
            SyscallAction::Allow => self.verdict(ALLOW),
            SyscallAction::Refuse { errno } => self.verdict(fail_with(errno.value)),
            SyscallAction::AllowIf {
                argument,
                test,
                otherwise,
            } => {
                let pass = self.verdict(ALLOW);
                let fail = self.verdict(fail_with(otherwise.value));
                let decision = self.test(test, pass, fail);
                self.push_then(LOAD, offset_argument(*argument), decision)
            }
        }
    }

    fn test(&mut self, test: &ArgumentTest, pass: Label, fail: Label) -> Label {
        let (constants, named, others) = match test {
            ArgumentTest::AnyOf(constants) => (constants, pass, fail),
            ArgumentTest::NoneOf(constants) => (constants, fail, pass),
            ArgumentTest::NoBitsOf(constants) => {
                let bits = constants.iter().fold(0, |bits, constant| bits | constant.value);
                return self.push_branch(JUMP_IF_BITS, bits, fail, pass);
            }
        };
        let mut points: BTreeMap<u32, Label> = BTreeMap::from([(0, others)]);
        for constant in constants {
            points.insert(constant.value, named);
            if let Some(next) = constant.value.checked_add(1) {
                points.entry(next).or_insert(others);
            }
        }
        let mut ranges: Vec<(u32, Label)> = points.into_iter().collect();
        ranges.dedup_by_key(|(_, label)| *label);
        self.decide(&ranges)
    }

    fn into_program(mut self) -> Vec<Instruction> {
        self.code.reverse();
        self.code
    }
}
