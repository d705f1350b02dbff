//! An assembler that writes a BPF program from its end, so that every jump leads to an existing instruction.

use std::collections::BTreeMap;

use super::bpf::{Instruction, JUMP, RETURN};
use super::error::{CompileError, MAX_INSTRUCTIONS};

/// A program under construction, in reverse order.
#[derive(Default)]
pub(super) struct ReverseAssembler {
    code: Vec<Instruction>,
    /// The nearest return instruction for each value.
    returns: BTreeMap<u32, Label>,
}

/// A position, counted from the end of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label(usize);

impl ReverseAssembler {
    /// Emits an instruction that continues with the one emitted last.
    pub fn emit(&mut self, code: u16, k: u32) -> Label {
        self.push(Instruction { code, jt: 0, jf: 0, k })
    }

    /// Emits an instruction that continues at `next`, with a jump in between if `next` is not adjacent.
    pub fn emit_before(&mut self, code: u16, k: u32, next: Label) -> Result<Label, CompileError> {
        let distance = self.distance(next);
        if distance > 0 {
            self.emit_jump(distance)?;
        }
        Ok(self.emit(code, k))
    }

    /// Emits a conditional jump.
    pub fn emit_branch(&mut self, code: u16, k: u32, yes: Label, no: Label) -> Result<Label, CompileError> {
        // Bringing `no` into reach can move `yes` away by one instruction.
        let yes = self.bring_into_reach(yes, 1)?;
        let no = self.bring_into_reach(no, 0)?;
        let offset = |distance: usize| u8::try_from(distance).map_err(|_| CompileError::JumpTooLong(distance));
        let (jt, jf) = (offset(self.distance(yes))?, offset(self.distance(no))?);
        Ok(self.push(Instruction { code, jt, jf, k }))
    }

    /// Emits a return instruction, or reuses an earlier one with the same value.
    pub fn emit_return(&mut self, value: u32) -> Label {
        match self.returns.get(&value) {
            Some(label) => *label,
            None => {
                let label = self.emit(RETURN, value);
                self.returns.insert(value, label);
                label
            }
        }
    }

    /// The program, in the order in which the kernel runs it.
    pub fn into_program(mut self) -> Result<Vec<Instruction>, CompileError> {
        if self.code.len() > MAX_INSTRUCTIONS {
            return Err(CompileError::TooLong(self.code.len()));
        }
        self.code.reverse();
        Ok(self.code)
    }

    fn push(&mut self, instruction: Instruction) -> Label {
        self.code.push(instruction);
        Label(self.code.len() - 1)
    }

    fn emit_jump(&mut self, distance: usize) -> Result<Label, CompileError> {
        let k = u32::try_from(distance).map_err(|_| CompileError::JumpTooLong(distance))?;
        Ok(self.emit(JUMP, k))
    }

    /// How many instructions the next one would have to skip to reach `target`.
    fn distance(&self, target: Label) -> usize {
        self.code.len() - target.0 - 1
    }

    /// A label that a conditional jump can reach after `reserve` more instructions: `target` itself, a copy of its
    /// return instruction, or a jump to it.
    fn bring_into_reach(&mut self, target: Label, reserve: usize) -> Result<Label, CompileError> {
        let distance = self.distance(target);
        if distance + reserve <= usize::from(u8::MAX) {
            return Ok(target);
        }
        let instruction = self.code[target.0];
        if instruction.code == RETURN {
            let copy = self.push(instruction);
            self.returns.insert(instruction.k, copy);
            return Ok(copy);
        }
        self.emit_jump(distance)
    }
}

#[cfg(test)]
mod tests {
    use super::super::bpf::{ALLOW, JUMP_IF_EQUAL, LOAD};
    use super::*;

    #[test]
    fn a_distant_label_is_reached_by_a_jump_and_not_by_a_shortened_offset() {
        let mut code = ReverseAssembler::default();
        let allow = code.emit_return(ALLOW);
        let distant = code.emit(LOAD, 0);
        for _ in 0..300 {
            code.emit(LOAD, 4);
        }
        code.emit_branch(JUMP_IF_EQUAL, 7, distant, allow).unwrap();
        let program = code.into_program().unwrap();
        // The branch, a copy of the return instruction, and a jump over the 300 instructions.
        assert_eq!((program[0].jt, program[0].jf), (1, 0));
        assert_eq!((program[1].code, program[1].k), (RETURN, ALLOW));
        assert_eq!((program[2].code, program[2].k), (JUMP, 300));
    }

    #[test]
    fn a_program_that_the_kernel_would_refuse_is_an_error() {
        let mut code = ReverseAssembler::default();
        for _ in 0..=MAX_INSTRUCTIONS {
            code.emit(LOAD, 0);
        }
        assert_eq!(code.into_program(), Err(CompileError::TooLong(MAX_INSTRUCTIONS + 1)));
    }
}
