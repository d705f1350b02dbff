//! An assembler that writes a BPF program backwards. BPF jumps only forwards, so the target of every jump exists before
//! the jump does.

use std::collections::BTreeMap;

use super::bpf::{Instruction, JUMP, RETURN};
use super::error::{CompileError, MAX_INSTRUCTIONS};

/// A program under construction, in reverse order.
#[derive(Default)]
pub(super) struct ReverseAssembler {
    reversed: Vec<Instruction>,
    /// The return instruction emitted last for each return value.
    returns: BTreeMap<u32, Label>,
}

/// A position, counted from the end of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label(usize);

impl ReverseAssembler {
    /// Emits an instruction that runs before the one emitted last.
    pub fn emit(&mut self, opcode: u16, k: u32) -> Label {
        self.push(Instruction {
            code: opcode,
            jt: 0,
            jf: 0,
            k,
        })
    }

    /// Emits an instruction that runs before the one at `next`, with a jump in between if they are not adjacent.
    pub fn emit_before(&mut self, opcode: u16, k: u32, next: Label) -> Result<Label, CompileError> {
        let distance = self.distance(next);
        if distance > 0 {
            self.emit_jump(distance)?;
        }
        Ok(self.emit(opcode, k))
    }

    /// Emits a conditional jump.
    pub fn emit_branch(&mut self, opcode: u16, k: u32, if_true: Label, if_false: Label) -> Result<Label, CompileError> {
        // The second call can emit one instruction, which moves `if_true` away by one.
        let if_true = self.reachable_label(if_true, 1)?;
        let if_false = self.reachable_label(if_false, 0)?;
        let offset = |distance: usize| u8::try_from(distance).map_err(|_| CompileError::JumpTooLong(distance));
        let (jt, jf) = (offset(self.distance(if_true))?, offset(self.distance(if_false))?);
        Ok(self.push(Instruction {
            code: opcode,
            jt,
            jf,
            k,
        }))
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
        if self.reversed.len() > MAX_INSTRUCTIONS {
            return Err(CompileError::TooLong(self.reversed.len()));
        }
        self.reversed.reverse();
        Ok(self.reversed)
    }

    fn push(&mut self, instruction: Instruction) -> Label {
        self.reversed.push(instruction);
        Label(self.reversed.len() - 1)
    }

    fn emit_jump(&mut self, distance: usize) -> Result<Label, CompileError> {
        let k = u32::try_from(distance).map_err(|_| CompileError::JumpTooLong(distance))?;
        Ok(self.emit(JUMP, k))
    }

    /// How many instructions the next one emitted would have to skip to reach `target`.
    fn distance(&self, target: Label) -> usize {
        self.reversed.len() - target.0 - 1
    }

    /// A label that a conditional jump can reach after `reserve` more instructions: `target` itself, a copy of its
    /// return instruction, or a jump to it.
    fn reachable_label(&mut self, target: Label, reserve: usize) -> Result<Label, CompileError> {
        let distance = self.distance(target);
        if distance + reserve <= usize::from(u8::MAX) {
            return Ok(target);
        }
        let instruction = self.reversed[target.0];
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
        let mut assembler = ReverseAssembler::default();
        let allow = assembler.emit_return(ALLOW);
        let distant = assembler.emit(LOAD, 0);
        for _ in 0..300 {
            assembler.emit(LOAD, 4);
        }
        assembler.emit_branch(JUMP_IF_EQUAL, 7, distant, allow).unwrap();
        let program = assembler.into_program().unwrap();
        // The branch, a copy of the return instruction, and a jump over the 300 instructions.
        assert_eq!((program[0].jt, program[0].jf), (1, 0));
        assert_eq!((program[1].code, program[1].k), (RETURN, ALLOW));
        assert_eq!((program[2].code, program[2].k), (JUMP, 300));
    }

    #[test]
    fn a_program_that_the_kernel_would_refuse_is_an_error() {
        let mut assembler = ReverseAssembler::default();
        for _ in 0..=MAX_INSTRUCTIONS {
            assembler.emit(LOAD, 0);
        }
        assert_eq!(
            assembler.into_program(),
            Err(CompileError::TooLong(MAX_INSTRUCTIONS + 1))
        );
    }
}
